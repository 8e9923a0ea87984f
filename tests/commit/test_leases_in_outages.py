"""Leases are only about liveness: a store that is out, or slow, takes no job from a worker that works."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bucketq import Claim, Client, Queue
from bucketq.testing import Clock, Fault, FaultyStore
from tests.commit.support import Bucket

LEASE = 30
OUTAGES = [10, 25, 29, 31, 35, 39, 41, 42, 45, 51, 55, 65, 90, 150]


async def work(claim: Claim[Any], done: asyncio.Event) -> None:
    async with claim:
        await done.wait()


def outage(*stores: FaultyStore) -> None:
    for store in stores:
        store.next("any", Fault.UNAVAILABLE, times=10**9)


async def workers(queue: Queue[Any], count: int) -> tuple[list[asyncio.Task[None]], asyncio.Event]:
    await queue.push_many(range(count))
    done = asyncio.Event()
    return [asyncio.create_task(work(claim, done)) for claim in await queue.claim(count, lease=LEASE)], done


async def all_complete_once(bucket: Bucket, client: Client, working: list[asyncio.Task[None]]) -> None:
    await bucket.run(asyncio.wait(working))
    assert [task.exception() for task in working] == [None] * len(working)
    await bucket.run(client.upkeep())
    records = await bucket.records()
    assert [len(record.attempts) for record in records] == [1] * len(working)
    await bucket.state()


@pytest.mark.parametrize("lasts", OUTAGES)
@pytest.mark.parametrize("begins", [0, 9])
async def test_no_job_is_taken_from_its_worker(
    bucket: Bucket, client: Client, queue: Queue[Any], begins: float, lasts: float
):
    working, done = await workers(queue, 3)
    await bucket.clock.advance(begins)
    outage(bucket.faulty)
    await bucket.clock.advance(lasts)
    bucket.faulty.heal()
    await bucket.clock.advance(45)
    assert not any(task.done() for task in working)
    done.set()
    await all_complete_once(bucket, client, working)


@pytest.mark.parametrize("lasts", [35, 42, 55, 80, 150])
async def test_nor_by_another_process_that_was_cut_off_too(
    bucket: Bucket, client: Client, queue: Queue[Any], lasts: float
):
    """It could not read for longer than a beat when the leases would have been over, and it is the first to be back."""
    cut_off = FaultyStore(bucket.inner)
    watcher = await bucket.connect(cut_off, worker="watcher")
    working, done = await workers(queue, 3)
    assert (await watcher.queue("q").stats()).running == 3
    outage(bucket.faulty, cut_off)
    await bucket.clock.advance(lasts)
    cut_off.heal()
    await bucket.clock.advance(3)
    bucket.faulty.heal()
    await bucket.clock.advance(45)
    assert not any(task.done() for task in working)
    done.set()
    await all_complete_once(bucket, client, working)


@pytest.mark.parametrize("takes", [4, 5.5, 7, 9, 20])
async def test_a_claim_that_took_as_long_as_its_lease_to_write_is_good_for_all_of_it(
    bucket: Bucket, queue: Queue[Any], clock: Clock, takes: float
):
    await queue.push("work")
    held = bucket.hold("write")
    claiming = asyncio.create_task(queue.claim(lease=5))
    await held.arrived()
    await clock.advance(takes)
    held.release()
    (claim,) = await claiming
    await clock.advance(4.5)
    await bucket.run(claim.heartbeat())
    await bucket.run(claim.complete())


async def test_leases_still_end_after_an_outage(bucket: Bucket, client: Client, queue: Queue[Any], clock: Clock):
    """Re-armed, not forgotten."""
    await queue.push("work")
    await queue.claim(lease=LEASE)
    other = await bucket.connect(worker="other")
    waiting = asyncio.create_task(other.queue("q").claim(wait=1_000))
    await clock.advance(1)
    outage(bucket.faulty)
    await clock.advance(40)
    bucket.faulty.heal()
    await clock.advance(2 * LEASE + 5)
    assert [claim.token for claim in waiting.result()] == [2]


async def test_a_process_that_was_suspended_re_arms_them(bucket: Bucket, queue: Queue[Any], clock: Clock):
    """It was not looking: the worker of another process may have gone on, but so may its own not have."""
    await queue.push("work")
    (claim,) = await queue.claim(lease=LEASE)
    clock._mono_us += 300_000_000  # as after a suspend: time has passed, and no timer could fire
    clock._wall_us += 300_000_000
    await clock.advance(LEASE - 1)
    await claim.complete()


class TestProcessesThatLiveShorterThanTheLease:
    async def claim_once(self, bucket: Bucket, **options: Any) -> list[Claim[Any]]:
        client = await bucket.other()
        claims = await bucket.run(client.queue("q").claim(**options))
        await bucket.run(client.close())
        return claims

    @pytest.fixture(params=["alone", "beside one with a ttl"])
    async def orphan(self, request: pytest.FixtureRequest, bucket: Bucket, client: Client, queue: Queue[Any]) -> str:
        """A claimed job whose process has vanished."""
        job = await queue.push("work")
        if request.param != "alone":
            await client.queue("p").push("work", ttl=86_400)
        await queue.claim(lease=LEASE)
        bucket.faulty.crash()
        return job.id

    @pytest.mark.parametrize("wait", [0, 3])
    async def test_get_the_job_once_lease_and_clock_skew_are_over(
        self, bucket: Bucket, orphan: str, clock: Clock, wait: float
    ):
        for _ in range(10):
            assert await self.claim_once(bucket, wait=wait) == []
            await clock.advance(60)
        await clock.advance(LEASE)
        (claim,) = await self.claim_once(bucket, wait=wait)
        assert (claim.job.id, claim.token, claim.job.attempt) == (orphan, 2, 2)

    async def test_one_that_lives_long_enough_gets_it_by_its_own_clock(self, bucket: Bucket, orphan: str, clock: Clock):
        client = await bucket.other()
        waiting = asyncio.create_task(client.queue("q").claim(wait=100))
        await clock.advance(LEASE - 1)
        assert not waiting.done()
        await clock.advance(2)
        assert [claim.job.id for claim in waiting.result()] == [orphan]

    async def test_upkeep_from_cron_ends_it_as_well(self, bucket: Bucket, orphan: str, clock: Clock):
        await clock.advance(600 + LEASE + 1)
        client = await bucket.other()
        await bucket.run(client.upkeep())
        assert (await client.queue("q").get(orphan)).status == "ready"

    async def test_the_skew_is_a_setting(self, bucket: Bucket, orphan: str, clock: Clock):
        await clock.advance(LEASE + 61)
        client = await bucket.other(clock_skew_max=60)
        await bucket.run(client.upkeep())
        assert (await client.queue("q").get(orphan)).status == "ready"

    async def test_a_heartbeat_counts(self, bucket: Bucket, queue: Queue[Any], clock: Clock):
        await queue.push("work")
        (claim,) = await queue.claim(lease=LEASE)
        for _ in range(30):
            await clock.advance(25)
            await claim.heartbeat()
        assert await self.claim_once(bucket) == []
        await claim.complete()
