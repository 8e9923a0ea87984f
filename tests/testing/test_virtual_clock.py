from __future__ import annotations

import asyncio
import contextvars
import itertools
from datetime import UTC, datetime
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bucketq.clock
from bucketq.clock import SECOND_US
from bucketq.testing import Clock


def seconds_since(clock: Clock, start_us: int) -> float:
    return (clock.mono_us() - start_us) / SECOND_US


async def test_it_is_a_clock_that_starts_with_2026_and_stands_still():
    clock: bucketq.clock.Clock = Clock()
    assert datetime.fromtimestamp(clock.wall_us() / SECOND_US, UTC) == datetime(2026, 1, 1, tzinfo=UTC)
    assert clock.mono_us() == 1_000 * SECOND_US
    await asyncio.sleep(0)
    assert clock.mono_us() == 1_000 * SECOND_US


async def test_it_starts_at_the_given_times():
    clock = Clock(wall_us=5, mono_us=7)
    await clock.advance(1)
    assert (clock.wall_us(), clock.mono_us()) == (SECOND_US + 5, SECOND_US + 7)


async def test_timers_fire_in_order_each_at_its_own_moment():
    clock, fired = Clock(mono_us=0), []
    for delay in (30, 10, 20):
        clock.call_later(delay, partial(lambda delay: fired.append((delay, clock.mono_us() // SECOND_US)), delay))
    await clock.advance(25)
    assert fired == [(10, 10), (20, 20)]
    await clock.advance(5)
    assert fired[2:] == [(30, 30)]


async def test_timers_of_the_same_moment_fire_in_the_order_in_which_they_were_set():
    clock = Clock()
    fired: list[str] = []
    for name in "abc":
        clock.call_later(1, partial(fired.append, name))
    await clock.advance(1)
    assert fired == ["a", "b", "c"]


async def test_a_timer_may_cancel_another_of_the_same_moment():
    clock, fired = Clock(), []

    def cancel_second() -> None:
        second.cancel()

    clock.call_later(1, cancel_second)
    second = clock.call_later(1, lambda: fired.append("second"))
    await clock.advance(1)
    assert fired == []


async def test_a_cancelled_timer_is_gone_and_cancelling_again_does_nothing():
    clock, fired = Clock(), []
    timer = clock.call_later(1, lambda: fired.append("cancelled"))
    clock.call_later(1, lambda: fired.append("kept"))
    timer.cancel()
    assert clock.pending.next_in_s == 1.0
    await clock.advance(2)
    timer.cancel()
    assert fired == ["kept"]
    assert clock.pending == (0, None)


async def test_a_timer_set_by_a_timer_fires_in_the_same_advance_if_it_is_due():
    clock, fired = Clock(mono_us=0), []

    def tick() -> None:
        fired.append(clock.mono_us() // SECOND_US)
        clock.call_later(3, tick)

    clock.call_later(3, tick)
    await clock.advance(10)
    assert fired == [3, 6, 9]
    assert clock.pending == (1, 2.0)


async def test_a_timer_without_delay_needs_no_advance():
    clock, fired = Clock(), asyncio.Event()
    clock.call_later(0, fired.set)
    await fired.wait()
    await clock.sleep(0)
    assert clock.pending == (0, None)


async def test_tasks_that_sleep_again_and_again_wake_at_every_turn():
    clock = Clock()
    start_us, woken = clock.mono_us(), []

    async def sleeper(name: str, every_s: float) -> None:
        while True:
            await clock.sleep(every_s)
            woken.append((seconds_since(clock, start_us), name))

    tasks = [asyncio.create_task(sleeper("a", 2)), asyncio.create_task(sleeper("b", 3))]
    await clock.advance(7)
    assert woken == [(2, "a"), (3, "b"), (4, "a"), (6, "b"), (6, "a")]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert clock.pending.timers == 0


async def test_what_a_timer_sets_going_is_over_before_the_next_one_fires():
    clock, seen = Clock(), []

    async def long_chain() -> None:
        await clock.sleep(1)
        for _ in range(300):
            await asyncio.sleep(0)
        seen.append("chain")

    task = asyncio.create_task(long_chain())
    clock.call_later(1.000001, lambda: seen.append("timer"))
    await clock.advance(2)
    assert seen == ["chain", "timer"]
    await task


async def test_a_task_that_never_waits_does_not_stop_the_clock():
    clock = Clock()

    async def spin() -> None:
        for _ in itertools.count():
            await asyncio.sleep(0)

    task = asyncio.create_task(spin())
    await clock.advance(1)
    task.cancel()


def test_a_loop_that_hides_what_is_ready_gets_many_turns():
    uvloop = pytest.importorskip("uvloop")

    async def check() -> None:
        clock, done = Clock(), []

        async def chain() -> None:
            await clock.sleep(1)
            for _ in range(50):
                await asyncio.sleep(0)
            done.append(True)

        task = asyncio.create_task(chain())
        await clock.advance(1)
        assert done
        await task

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert not hasattr(runner.get_loop(), "_ready")
        runner.run(check())


async def test_a_callback_runs_in_the_context_in_which_it_was_set():
    clock, seen = Clock(), []
    name = contextvars.ContextVar("name", default="nobody")
    token = name.set("setter")
    clock.call_later(1, lambda: seen.append(name.get()))
    name.reset(token)
    await clock.advance(1)
    assert seen == ["setter"]


async def test_the_wall_clock_jumps_alone_and_fires_nothing():
    clock, fired = Clock(), []
    wall_us, mono_us = clock.wall_us(), clock.mono_us()
    clock.call_later(10, lambda: fired.append("timer"))
    clock.jump_wall(3_600)
    assert (clock.wall_us(), clock.mono_us(), fired) == (wall_us + 3_600 * SECOND_US, mono_us, [])
    clock.jump_wall(-7_200)
    await clock.advance(10)
    assert clock.wall_us() == wall_us - 3_590 * SECOND_US
    assert fired == ["timer"]


async def test_time_does_not_run_backwards():
    with pytest.raises(ValueError, match="backwards"):
        await Clock().advance(-1)


async def test_a_cancelled_sleep_leaves_no_timer():
    clock = Clock()
    task = asyncio.create_task(clock.sleep(60))
    await clock.settle()
    assert clock.pending.next_in_s == 60.0
    task.cancel()
    await clock.settle()
    assert clock.pending == (0, None)


async def test_run_goes_from_timer_to_timer_until_the_answer_is_there():
    clock = Clock()
    start_us = clock.mono_us()

    async def slow_answer() -> str:
        for _ in range(3):
            await clock.sleep(10)
        return "answer"

    clock.call_later(100, lambda: None)
    assert await clock.run(slow_answer()) == "answer"
    assert seconds_since(clock, start_us) == 30
    assert clock.pending.timers == 1


async def test_run_gives_up_in_time_and_when_nothing_is_left_to_wait_for():
    clock = Clock()
    sleeping = asyncio.create_task(clock.sleep(60))
    with pytest.raises(TimeoutError):
        await clock.run(sleeping, within_s=59)
    await clock.settle()
    assert sleeping.cancelled()
    with pytest.raises(TimeoutError):
        await clock.run(asyncio.Event().wait())


async def test_run_passes_an_error_on():
    async def broken() -> None:
        raise LookupError("broken")

    with pytest.raises(LookupError):
        await Clock().run(broken())


async def test_a_machine_has_its_own_wall_clock_and_its_own_pace():
    clock = Clock()
    fast = clock.machine(wall_off_s=-60, drift_ppm=100_000)
    mono_us, wall_us = fast.mono_us(), fast.wall_us()
    assert wall_us == clock.wall_us() - 60 * SECOND_US
    woken: list[int] = []
    fast.call_later(11, lambda: woken.append(clock.mono_us()))
    sleep = asyncio.create_task(fast.sleep(11))
    start_us = clock.mono_us()
    await clock.advance(20)
    await sleep
    assert woken == [start_us + 10 * SECOND_US]
    assert fast.mono_us() == mono_us + 22 * SECOND_US
    fast.jump_wall(5)
    clock.jump_wall(500)
    assert fast.wall_us() == wall_us + 27 * SECOND_US


@given(st.lists(st.floats(0.000001, 100), max_size=30), st.integers(-500_000, 500_000))
def test_no_timer_is_early_and_all_are_in_order(delays, drift_ppm):
    async def check() -> None:
        clock = Clock()
        machine = clock.machine(drift_ppm=drift_ppm)
        start_us, fired = machine.mono_us(), []
        for delay in delays:
            machine.call_later(delay, partial(lambda delay: fired.append((machine.mono_us(), delay)), delay))
        await clock.advance(201)
        assert sorted(delay for _, delay in fired) == sorted(delays)
        assert [at for at, _ in fired] == sorted(at for at, _ in fired)
        assert all(at - start_us >= round(delay * SECOND_US) for at, delay in fired)

    asyncio.run(check())
