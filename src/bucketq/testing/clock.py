"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
import bisect
import contextvars
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from bucketq.clock import SECOND_US, Timer

T = TypeVar("T")

NEW_YEAR_2026_US = 1_767_225_600 * SECOND_US

IDLE_ROUNDS = 5
"""The loop counts as settled when nothing else was ready this many times in a row."""
BLIND_ROUNDS = 200
"""How many turns a loop gets that does not show what is ready (one that is not of asyncio's own kind)."""
BUSY_ROUNDS_MAX = 10_000
"""So that a task which spins for ever does not stop the clock."""


class Pending(NamedTuple):
    """The timers that wait: how many, and in how many seconds the next one is due."""

    timers: int
    next_in_s: float | None


class Clock:
    """Virtual time for tests: it moves only by `advance`, `run` and `jump_wall`. Implements `bucketq.clock.Clock`.

    It rules what asks it for the time. `asyncio.sleep`, `asyncio.timeout`, threads and sockets go on by real time
    and are not waited for.
    """

    def __init__(self, wall_us: int = NEW_YEAR_2026_US, mono_us: int = 1_000 * SECOND_US) -> None:
        self._wall_us = wall_us
        self._mono_us = mono_us
        self._timers: list[_Timer] = []
        self._scheduled = 0

    def wall_us(self) -> int:
        return self._wall_us

    def mono_us(self) -> int:
        return self._mono_us

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Timer:
        """Run `callback` on the event loop once the clock has moved by `delay_s`; without a delay, at the loop's
        next turn."""
        return self.call_later_us(_us(delay_s), callback)

    def call_later_us(self, delay_us: int, callback: Callable[[], object]) -> Timer:
        if delay_us <= 0:
            return asyncio.get_running_loop().call_soon(callback)
        self._scheduled += 1
        timer = _Timer(self._timers, (self._mono_us + delay_us, self._scheduled), callback)
        bisect.insort(self._timers, timer, key=_order)
        return timer

    async def sleep(self, delay_s: float) -> None:
        await _sleep(self, delay_s)

    async def advance(self, seconds: float) -> None:
        """Move both times on. Every timer on the way fires at its own moment, in order, and what it sets going (new
        timers included) runs until it waits for something, before the next one fires."""
        if seconds < 0:
            raise ValueError("time does not run backwards; jump_wall sets the wall clock back")
        await self.settle()
        end_us = self._mono_us + _us(seconds)
        while self._timers and self._timers[0].order[0] <= end_us:
            await self._fire_next()
        self._move_to(end_us)
        await self.settle()

    async def run(self, awaitable: Awaitable[T], within_s: float = 3_600) -> T:
        """Await something that takes virtual time: the clock goes from timer to timer until it is done. Raises
        `TimeoutError`, and cancels it, if that takes longer than `within_s` or if no timer is left to wait for."""
        task = asyncio.ensure_future(awaitable)
        end_us = self._mono_us + _us(within_s)
        try:
            await self.settle()
            while not task.done():
                if not self._timers or self._timers[0].order[0] > end_us:
                    raise TimeoutError(f"not done within {within_s} s of virtual time; {self.pending}")
                await self._fire_next()
            return await task
        finally:
            task.cancel()

    def jump_wall(self, seconds: float) -> None:
        """Set the wall clock forth, or back if negative, as an operator or NTP does. No timer fires by it."""
        self._wall_us += _us(seconds)

    def machine(self, wall_off_s: float = 0.0, drift_ppm: int = 0) -> MachineClock:
        """The clock of one more machine in the same virtual time, with its own idea of it."""
        return MachineClock(self, wall_off_s, drift_ppm)

    @property
    def pending(self) -> Pending:
        if not self._timers:
            return Pending(0, None)
        return Pending(len(self._timers), (self._timers[0].order[0] - self._mono_us) / SECOND_US)

    async def settle(self) -> None:
        """Let everything run that can without time passing."""
        ready = getattr(asyncio.get_running_loop(), "_ready", None)
        if ready is None:
            for _ in range(BLIND_ROUNDS):
                await asyncio.sleep(0)
            return
        idle = 0
        for _ in range(BUSY_ROUNDS_MAX):
            await asyncio.sleep(0)
            idle = 0 if ready else idle + 1
            if idle == IDLE_ROUNDS:
                return

    async def _fire_next(self) -> None:
        timer = self._timers.pop(0)
        self._move_to(timer.order[0])
        asyncio.get_running_loop().call_soon(timer.fire, context=timer.context)
        await self.settle()

    def _move_to(self, mono_us: int) -> None:
        """Forward only: another task may have advanced further meanwhile."""
        step_us = max(0, mono_us - self._mono_us)
        self._mono_us += step_us
        self._wall_us += step_us


class MachineClock:
    """A clock beside another one, made by `Clock.machine`: its wall time is off by something, its quartz runs faster
    (`drift_ppm` > 0) or slower, and its timers fire as the other one advances."""

    def __init__(self, time: Clock, wall_off_s: float, drift_ppm: int) -> None:
        self._time = time
        self._rate_ppm = SECOND_US + drift_ppm
        self._start_us = time.mono_us()
        self._wall_start_us = time.wall_us() + _us(wall_off_s)

    def wall_us(self) -> int:
        return self._wall_start_us + self._elapsed_us()

    def mono_us(self) -> int:
        return self._start_us + self._elapsed_us()

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Timer:
        """As `Clock.call_later`, by this machine's time."""
        # Rounded up: on this machine a timer is never early.
        return self._time.call_later_us(-(-_us(delay_s) * SECOND_US // self._rate_ppm), callback)

    async def sleep(self, delay_s: float) -> None:
        await _sleep(self, delay_s)

    def jump_wall(self, seconds: float) -> None:
        """Set this machine's wall clock forth or back."""
        self._wall_start_us += _us(seconds)

    def _elapsed_us(self) -> int:
        return (self._time.mono_us() - self._start_us) * self._rate_ppm // SECOND_US


class _Timer:
    def __init__(self, waiting: list[_Timer], order: tuple[int, int], callback: Callable[[], object]) -> None:
        self.order = order
        self.context = contextvars.copy_context()
        self._waiting = waiting
        self._callback: Callable[[], object] | None = callback

    def fire(self) -> None:
        if self._callback is not None:
            self._callback()

    def cancel(self) -> None:
        self._callback = None
        at = bisect.bisect_left(self._waiting, self.order, key=_order)
        if at < len(self._waiting) and self._waiting[at] is self:
            del self._waiting[at]


def _order(timer: _Timer) -> tuple[int, int]:
    return timer.order


def _us(seconds: float) -> int:
    return round(seconds * SECOND_US)


async def _sleep(clock: Clock | MachineClock, delay_s: float) -> None:
    if _us(delay_s) <= 0:
        return await asyncio.sleep(0)
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = clock.call_later(delay_s, lambda: None if over.done() else over.set_result(None))
    try:
        await over
    finally:
        timer.cancel()
