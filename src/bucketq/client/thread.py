"""An event loop in a thread of its own, for callers that block."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Generic, TypeVar

from bucketq.errors import BucketqError

R = TypeVar("R")

Work = Callable[[], Coroutine[Any, Any, R]]
Undo = Callable[[R], Awaitable[object]]
Tasks = set[asyncio.Task[None]]

LOOK_UP_S = 1.0
"""A signal that comes just before the system call does not interrupt it: the caller looks up for it now and then."""

_UNSET: Any = object()


class Stopped(BucketqError):
    """The client is closed."""


class LoopThread:
    """Runs coroutines for the threads that wait for them. Must be made after a fork: threads do not survive one.

    A waiting caller may be interrupted (KeyboardInterrupt) between any two of its steps. So it only ever holds or waits
    for plain locks, never a Condition, an Event or a Future, which an interruption can leave locked for ever; and who
    was first, the answer or the interruption, is decided on the loop alone.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()  # the garbage collector may close an abandoned loop over claims anywhere
        self._open = True
        self._tasks: Tasks = set()
        self._stopped = asyncio.Event()
        self._loop = _new_loop()
        self._thread = threading.Thread(target=self._serve, name="bucketq", daemon=True)
        self._thread.start()

    def run(self, work: Work[R], undo: Undo[R] | None = None) -> R:
        """Do `work` on the loop, wait for it and return its result. A caller that is interrupted while it waits cancels
        it; if there is a result all the same, `undo` gets it. Raises `BucketqError` once stopped."""
        call = _Call(work, undo)
        try:
            self._submit(call.start)
            return call.wait()
        except BaseException:
            if not call.taken:
                with suppress(BucketqError):  # whoever stops the thread waits for what is under way
                    self._submit(call.abandon)
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

    def _submit(self, step: Callable[[Tasks], None]) -> None:
        with self._lock:
            if os.getpid() != self._pid:
                raise BucketqError("this client was opened before a fork: open one in each process, after it")
            if not self._open:
                raise Stopped("the client is closed: connect again")
            if self.is_current():
                raise BucketqError("a blocking call inside the client's own thread would wait for itself")
            self._loop.call_soon_threadsafe(step, self._tasks)

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        await self._stopped.wait()
        while self._tasks:
            await asyncio.wait(self._tasks)


class _Call(Generic[R]):
    """Work on the loop that a thread waits for."""

    __slots__ = ("_answered", "_error", "_result", "_task", "_undo", "_work", "taken")

    def __init__(self, work: Work[R], undo: Undo[R] | None) -> None:
        self._work = work
        self._undo = undo
        self._task: asyncio.Task[None] | None = None
        self._result: R = _UNSET
        self._error: BaseException | None = None
        self._answered = threading.Lock()
        self._answered.acquire()
        self.taken = False
        """Whether the answer is an error, and the caller has it."""

    def wait(self) -> R:
        """In the caller's thread."""
        while not self._answered.acquire(timeout=LOOK_UP_S):
            pass
        if self._error is not None:
            self.taken = True
            raise self._error
        return self._result

    def start(self, tasks: Tasks) -> None:
        """On the loop."""
        self._task = _spawn(self._run(), tasks)

    def abandon(self, tasks: Tasks) -> None:
        """On the loop: nobody takes the answer."""
        if self._task is None:
            return
        if self._result is _UNSET:
            self._task.cancel()
            self._task.add_done_callback(lambda task: self._take_back(tasks))
        else:
            self._take_back(tasks)

    async def _run(self) -> None:
        try:
            self._result = await self._work()
        except asyncio.CancelledError:
            self._error = Stopped("the client was closed during this call")
        except BaseException as error:
            self._error = error
        self._answered.release()

    def _take_back(self, tasks: Tasks) -> None:
        if self._undo is not None and self._result is not _UNSET:
            _ = _spawn(_undone(self._undo, self._result), tasks)


async def _undone(undo: Undo[R], result: R) -> None:
    with suppress(BucketqError):
        await undo(result)


def _spawn(work: Coroutine[Any, Any, None], tasks: Tasks) -> asyncio.Task[None]:
    """`tasks` keeps it alive until it has ended."""
    task = asyncio.get_running_loop().create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
