from __future__ import annotations

import asyncio
import random
from itertools import groupby

import pytest

from bucketq.errors import BucketqError
from bucketq.testing import Call, Clock, Crash, Fault, FaultyStore, MemoryStore

EVERY_FAULT_BUT_CRASH: dict[Fault, float] = {fault: 0.05 for fault in Fault if fault is not Fault.CRASH}


async def some_requests(faulty: FaultyStore, count: int = 400) -> None:
    dice = random.Random(1)
    for n in range(count):
        key = f"k/{dice.randrange(10)}"
        try:
            match dice.randrange(5):
                case 0:
                    await faulty.create(key, b"%d" % n)
                case 1:
                    found = await faulty.get(key)
                    if found:
                        await faulty.replace(key, b"%d" % n, found.version)
                case 2:
                    await faulty.delete(key)
                case 3:
                    [key async for key in faulty.list("k/")]
                case _:
                    await faulty.get(key)
        except BucketqError:
            pass


async def history(seed: int, rates: dict[Fault, float]) -> tuple[list[Call], dict[str, bytes]]:
    clock = Clock()
    inner = MemoryStore(clock)
    faulty = FaultyStore.random(inner, seed, rates, clock=clock)
    await clock.run(some_requests(faulty), within_s=1e6)
    left = {}
    async for key in inner.list("k/"):
        found = await inner.get(key)
        assert found
        left[key] = found.data
    return faulty.log, left


async def test_one_seed_gives_the_same_history_twice():
    assert await history(7, EVERY_FAULT_BUT_CRASH) == await history(7, EVERY_FAULT_BUT_CRASH)


async def test_the_order_of_the_rates_does_not_matter():
    reversed_rates = dict(reversed(EVERY_FAULT_BUT_CRASH.items()))
    assert await history(7, EVERY_FAULT_BUT_CRASH) == await history(7, reversed_rates)


async def test_another_seed_gives_another_history():
    assert await history(7, EVERY_FAULT_BUT_CRASH) != await history(8, EVERY_FAULT_BUT_CRASH)


async def test_every_fault_with_a_rate_happens_and_no_other():
    log, _ = await history(7, {Fault.LATE: 0.2, Fault.DUPLICATED: 0.2})
    assert {call.fault for call in log} == {None, Fault.LATE, Fault.DUPLICATED}
    log, _ = await history(7, EVERY_FAULT_BUT_CRASH)
    assert {call.fault for call in log} == {None, *EVERY_FAULT_BUT_CRASH}


async def test_faults_come_about_as_often_as_they_should():
    log, _ = await history(7, {Fault.REPLY_LOST: 0.25})
    assert 0.15 < sum(call.fault is not None for call in log) / len(log) < 0.35


async def test_late_requests_land_by_themselves():
    log, _ = await history(7, {Fault.LATE: 0.2})
    writes = [call for call in log[:-8] if call.fault is Fault.LATE and call.verb not in ("get", "list")]
    assert writes
    assert all(call.stored for call in writes)


async def test_an_outage_lasts_for_several_requests():
    log, _ = await history(7, {Fault.UNAVAILABLE: 0.05})
    outages = [len(list(calls)) for fault, calls in groupby(log, lambda call: call.fault) if fault]
    assert max(outages) > 2
    assert len(outages) > 3


async def test_a_random_crash_ends_the_process():
    faulty = FaultyStore.random(MemoryStore(Clock()), 7, {Fault.CRASH: 0.05})
    with pytest.raises(Crash):
        await some_requests(faulty)
    assert faulty.crashed
    assert faulty.log[-1].fault is Fault.CRASH


async def test_a_script_goes_before_the_dice_and_healing_ends_both():
    faulty = FaultyStore.random(MemoryStore(Clock()), 7, {Fault.REQUEST_LOST: 1.0})
    faulty.next("create", Fault.REPLY_LOST)
    for _ in range(2):
        with pytest.raises(BucketqError):
            await faulty.create("a", b"1")
    assert [call.fault for call in faulty.log] == [Fault.REPLY_LOST, Fault.REQUEST_LOST]
    faulty.heal()
    assert await faulty.get("a")


async def test_slow_requests_overtake_each_other_even_without_a_clock():
    faulty = FaultyStore.random(MemoryStore(Clock()), 7, {Fault.SLOW: 0.5})
    done: list[int] = []

    async def write(n: int) -> None:
        await faulty.create(f"k/{n}", b"")
        done.append(n)

    await asyncio.gather(*(write(n) for n in range(20)))
    assert done != sorted(done)


@pytest.mark.parametrize("rates", [{Fault.LATE: 0.6, Fault.SLOW: 0.6}, {Fault.LATE: -0.1}])
def test_rates_are_probabilities(rates):
    with pytest.raises(ValueError, match="at most 1"):
        FaultyStore.random(MemoryStore(), 7, rates)
