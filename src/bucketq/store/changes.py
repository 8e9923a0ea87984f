"""The signal behind `Store.changed()`: from any thread, to waiters on any event loop, none lost between calls."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any
from weakref import WeakKeyDictionary


class Changes:
    """Counts changes and wakes all who wait for the next one.

    Users that share a store each need to hear of a change, so each task has its own mark of how far it has
    heard. A task that calls for the first time starts where the last such call ended: a caller that makes a
    new task for every call misses nothing either, as long as it is the only one that does so.
    """

    def __init__(self, count: int = 0) -> None:
        """`count` above 0: the first call returns at once."""
        self._lock = threading.Lock()
        self._count = count
        self._heard_by_newcomers = 0
        self._heard: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()
        # a dict for its order: the same run wakes the same waiters in the same order
        self._waiters: dict[asyncio.Future[None], None] = {}

    def notify(self) -> None:
        """Something changed. May be called from any thread."""
        with self._lock:
            self._count += 1
            waiters = list(self._waiters)
            self._waiters.clear()
        for waiter in waiters:
            _wake(waiter)

    async def wait(self) -> None:
        """Return as soon as there is a change that this task has not heard of."""
        task = asyncio.current_task()
        assert task is not None
        with self._lock:
            heard = self._heard.get(task, self._heard_by_newcomers)
        while (waiter := self._waiter_if_none_since(heard, task)) is not None:
            try:
                await waiter
            finally:
                with self._lock:
                    self._waiters.pop(waiter, None)

    def _waiter_if_none_since(self, heard: int, task: asyncio.Task[Any]) -> asyncio.Future[None] | None:
        with self._lock:
            if self._count == heard:
                waiter = asyncio.get_running_loop().create_future()
                self._waiters[waiter] = None
                return waiter
            if task not in self._heard:
                self._heard_by_newcomers = self._count
            self._heard[task] = self._count
            return None


def _wake(waiter: asyncio.Future[None]) -> None:
    loop = waiter.get_loop()
    if loop is _running_loop():
        _settle(waiter)
    else:
        with contextlib.suppress(RuntimeError):  # its loop has ended, and the waiter with it
            loop.call_soon_threadsafe(_settle, waiter)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _settle(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
