"""An event loop in a thread of its own, for callers that block."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, Generic, TypeVar

from bucketq.errors import BucketqError

R = TypeVar("R")

Undo = Callable[[R], Awaitable[object]]


class Stopped(BucketqError):
    """The client is closed."""


class LoopThread:
    """Runs coroutines for the threads that wait for them. Must be made after a fork: threads do not survive one."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._open = True
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = asyncio.Event()
        started: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(target=self._serve, args=(started,), name="bucketq", daemon=True)
        self._thread.start()
        self._loop = started.result()

    def run(self, work: Coroutine[Any, Any, R], undo: Undo[R] | None = None) -> R:
        """Wait for `work` and return its result. A caller that is interrupted while it waits (KeyboardInterrupt)
        cancels it; if there is a result all the same, `undo` gets it. Raises `BucketqError` once stopped."""
        call = _Call(work, undo)
        try:
            self._submit(call)
            return call.done.result()
        except BaseException:
            if call.done.cancel():
                self._abandon(call)
            elif undo is not None and call.done.exception() is None:
                self._submit(_Call(_undone(undo, call.done.result()), None))
            raise
        finally:
            del call  # it holds the error, which holds this frame

    def is_current(self) -> bool:
        """Whether this is the loop's own thread, in which nothing may wait."""
        return threading.current_thread() is self._thread

    def stop(self) -> None:
        """Let what is under way come to its end, and end the thread. Again: does nothing."""
        with self._lock:
            was_open, self._open = self._open, False
        if was_open and os.getpid() == self._pid:
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join()

    def _submit(self, call: _Call[Any]) -> None:
        with self._lock:
            self._check()
            self._loop.call_soon_threadsafe(call.start, self._tasks)

    def _abandon(self, call: _Call[Any]) -> None:
        with self._lock:
            if self._open and os.getpid() == self._pid and not self.is_current():
                self._loop.call_soon_threadsafe(call.cancel)
            else:
                call.cancel()

    def _check(self) -> None:
        if os.getpid() != self._pid:
            raise BucketqError("this client was opened before a fork: open one in each process, after it")
        if not self._open:
            raise Stopped("the client is closed: connect again")
        if self.is_current():
            raise BucketqError("a blocking call inside the client's own thread would wait for itself")

    def _serve(self, started: Future[asyncio.AbstractEventLoop]) -> None:
        with asyncio.Runner(loop_factory=_new_loop) as runner:
            started.set_result(runner.get_loop())
            runner.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        await self._stopped.wait()
        while self._tasks:
            await asyncio.wait(self._tasks)


class _Call(Generic[R]):
    """A coroutine that a thread waits for. `done` decides which came first, the result or the interruption."""

    __slots__ = ("_task", "_undo", "_work", "done")

    def __init__(self, work: Coroutine[Any, Any, R], undo: Undo[R] | None) -> None:
        self.done: Future[R] = Future()
        self._work = work
        self._undo = undo
        self._task: asyncio.Task[None] | None = None

    def start(self, tasks: set[asyncio.Task[None]]) -> None:
        """On the loop; `tasks` keeps it alive until it has ended."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        tasks.add(self._task)
        self._task.add_done_callback(tasks.discard)

    def cancel(self) -> None:
        """On the loop, or anywhere if it was never started."""
        if self._task is None:
            self._work.close()
        else:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            result = await self._work
        except asyncio.CancelledError:
            self.done.cancel()
        except BaseException as error:
            with suppress(InvalidStateError):
                self.done.set_exception(error)
        else:
            await self._deliver(result)

    async def _deliver(self, result: R) -> None:
        try:
            self.done.set_result(result)
        except InvalidStateError:
            if self._undo is not None:
                await self._undo(result)


async def _undone(undo: Undo[R], result: R) -> None:
    await undo(result)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
