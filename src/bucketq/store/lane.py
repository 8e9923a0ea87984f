"""One thread that does blocking work for an event loop, in order, with as little in between as can be."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class Lane:
    """Runs what it is given, one after the other. The thread starts with the first piece of work.

    It is a daemon: a process that ends without closing its store ends all the same.
    """

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[tuple[asyncio.Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def submit(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run `work` in the thread. Cancelling the future stops only what has not begun."""
        if self._thread.ident is None:
            self._thread.start()
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.put((future, work))
        return future

    async def close(self) -> None:
        """Return when all work is done and the thread has ended."""
        if not self._thread.is_alive():
            return
        drained = self.submit(_nothing)
        self._queue.put(None)
        await drained
        self._thread.join()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            future, work = item
            if not future.cancelled():
                _run_for(future, work)
            del item, future, work  # else the last result would live until the next call


def _run_for(future: asyncio.Future[T], work: Callable[[], T]) -> None:
    try:
        result = work()
    except BaseException as error:  # whatever it is belongs to the caller; the thread goes on
        _deliver(future, future.set_exception, error)
    else:
        _deliver(future, future.set_result, result)


def _deliver(future: asyncio.Future[Any], settle: Callable[[Any], None], value: object) -> None:
    with contextlib.suppress(RuntimeError):  # the caller's loop has ended
        future.get_loop().call_soon_threadsafe(_settle, future, settle, value)


def _settle(future: asyncio.Future[Any], settle: Callable[[Any], None], value: object) -> None:
    if not future.cancelled():
        settle(value)


def _nothing() -> None:
    pass
