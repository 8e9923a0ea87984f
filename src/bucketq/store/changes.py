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
    heard. A caller may also make a new task for every call, as `wait_for` did: a task's first call goes on where
    the tasks that called once and ended had got to. Two such callers on one store could take a change from
    each other; lasting tasks can't.
    """

    def __init__(self, count: int = 0) -> None:
        """`count` above 0: the first call returns at once."""
        self._lock = threading.Lock()
        self._count = count
        self._lasting: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()
        self._once: dict[asyncio.Task[Any], int] = {}
        self._ended = 0
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
        heard = self._heard_by(task)
        while (waiter := self._waiter_if_none_since(heard, task)) is not None:
            try:
                await waiter
            finally:
                with self._lock:
                    self._waiters.pop(waiter, None)

    def _heard_by(self, task: asyncio.Task[Any]) -> int:
        with self._lock:
            if task in self._once:
                self._lasting[task] = self._once.pop(task)
            if task in self._lasting:
                return self._lasting[task]
            for ended in [other for other in self._once if other.done()]:
                self._ended = max(self._ended, self._once.pop(ended))
            return self._ended

    def _waiter_if_none_since(self, heard: int, task: asyncio.Task[Any]) -> asyncio.Future[None] | None:
        with self._lock:
            if self._count == heard:
                waiter = asyncio.get_running_loop().create_future()
                self._waiters[waiter] = None
                return waiter
            marks = self._lasting if task in self._lasting else self._once
            marks[task] = self._count
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
