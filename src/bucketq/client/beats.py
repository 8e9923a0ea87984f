"""Heartbeats in the background."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from bucketq.clock import Clock, Timer
from bucketq.errors import LeaseLost

log = logging.getLogger("bucketq")

BEATS_PER_LEASE = 3


class Beats:
    """Calls `beat` every third of a lease, one at a time, until stopped. `LeaseLost` ends it and calls `lost`; after
    any other error the next beat tries again. A timer, and no task unless a beat is due: most work is over before."""

    def __init__(
        self, clock: Clock, lease_s: float, beat: Callable[[], Awaitable[None]], lost: Callable[[], None]
    ) -> None:
        self._clock = clock
        self._interval_s = lease_s / BEATS_PER_LEASE
        self._beat = beat
        self._lost = lost
        self._task: asyncio.Task[None] | None = None
        self._timer: Timer = clock.call_later(self._interval_s, self._due)

    def stop(self) -> None:
        """No beat is sent from here on, and `lost` is not called any more."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _due(self) -> None:
        self._timer = self._clock.call_later(self._interval_s, self._due)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        try:
            await self._beat()
        except LeaseLost:
            self._timer.cancel()
            self._lost()
        except Exception as error:
            log.warning("a heartbeat failed and will be repeated: %s: %s", type(error).__name__, error)
