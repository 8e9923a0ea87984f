"""The clock as an object passed in: wall time, monotonic time, timers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

SECOND_US = 1_000_000


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """Where time comes from. `mono_us` must count time in which the machine sleeps."""

    def wall_us(self) -> int: ...

    def mono_us(self) -> int: ...

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Timer:
        """Run `callback` on the running event loop after `delay_s` seconds."""
        ...

    async def sleep(self, delay_s: float) -> None: ...


_MONO_ID = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The machine's clocks; monotonic is CLOCK_BOOTTIME where there is one."""

    def wall_us(self) -> int:
        return time.time_ns() // 1_000

    def mono_us(self) -> int:
        return time.clock_gettime_ns(_MONO_ID) // 1_000

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(delay_s, callback)

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
