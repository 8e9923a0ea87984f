"""The blocking twin: the same verbs for code without an event loop, and for threads."""

from __future__ import annotations

import atexit
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable
from contextlib import suppress
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, Unpack, overload

from bucketq.client.claim import Claim, as_claim
from bucketq.client.client import Client
from bucketq.client.connect import connect
from bucketq.client.job import Job
from bucketq.client.queue import Queue
from bucketq.client.taking import give_back
from bucketq.client.thread import LoopThread, Stopped
from bucketq.clock import Clock
from bucketq.errors import BucketqError
from bucketq.settings import Duration, Options
from bucketq.store import Store

A = TypeVar("A")
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def connect_sync(url: str | Store, *, clock: Clock | None = None, **settings: Unpack[Options]) -> SyncClient:
    """A blocking client: `with connect_sync(url) as client:`, or `client.close()` at the end. Takes and raises what
    `connect` does. It has a thread with an event loop of its own, so it must be opened after a fork, in each process;
    any number of threads may use it at once."""
    opening = connect(url, clock=clock, **settings)
    thread = LoopThread()
    try:
        return SyncClient(thread.run(opening._open, Client.close), thread)
    except BaseException:
        thread.stop()
        raise


class _Twin(Protocol[A]):
    """Has its asynchronous twin inside."""

    _inner: A
    _thread: LoopThread


class Verb(Generic[A, P, R]):
    """A method that waits for the method of the same name of the asynchronous twin."""

    def __init__(self, method: Callable[Concatenate[A, P], Coroutine[Any, Any, R]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, twin: None, owner: type) -> Self: ...
    @overload
    def __get__(self, twin: _Twin[A], owner: type) -> Callable[P, R]: ...
    def __get__(self, twin: _Twin[A] | None, owner: type) -> Self | Callable[P, R]:
        if twin is None:
            return self
        method = self._method

        @wraps(method)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return twin._thread.run(lambda: method(twin._inner, *args, **kwargs))

        return call


class SyncClaim(Generic[T]):
    """As `Claim`, blocking. `with claim:` beats in the background while its body works; a thread can't be cancelled, so
    a lost lease shows in `claim.lost`, and at the end as `LeaseLost`."""

    complete = Verb(Claim[T].complete)
    fail = Verb(Claim[T].fail)
    release = Verb(Claim[T].release)
    heartbeat = Verb(Claim[T].heartbeat)

    def __init__(self, inner: Claim[T], thread: LoopThread) -> None:
        self._inner = inner
        self._thread = thread

    @property
    def job(self) -> Job[T]:
        return self._inner.job

    @property
    def payload(self) -> T:
        return self._inner.payload

    @property
    def token(self) -> int:
        return self._inner.token

    @property
    def lease(self) -> float:
        """Its length in seconds."""
        return self._inner.lease

    @property
    def lost(self) -> bool:
        """Whether the lease is known to be lost: then stop, the work is no longer yours."""
        return self._inner.lost

    def set_result(self, result: Any) -> None:
        """The result with which the end of `with claim:` completes the job."""
        self._inner.set_result(result)

    def __enter__(self) -> Self:
        self._thread.run(self._inner._begin_work)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.run(lambda: self._inner._end_work(error))

    def __repr__(self) -> str:
        return repr(self._inner)


class SyncQueue(Generic[T]):
    """As `Queue`, blocking; made by `client.queue`."""

    push = Verb(Queue[T].push)
    push_many = Verb(Queue[T].push_many)
    get = Verb(Queue[T].get)
    jobs = Verb(Queue[T].jobs)
    stats = Verb(Queue[T].stats)
    cancel = Verb(Queue[T].cancel)
    retry = Verb(Queue[T].retry)
    purge = Verb(Queue[T].purge)
    pause = Verb(Queue[T].pause)
    resume = Verb(Queue[T].resume)
    configure = Verb(Queue[T].configure)
    settings = Verb(Queue[T].settings)
    subscribe = Verb(Queue[T].subscribe)
    unsubscribe = Verb(Queue[T].unsubscribe)
    groups = Verb(Queue[T].groups)
    schedule = Verb(Queue[T].schedule)
    unschedule = Verb(Queue[T].unschedule)
    schedules = Verb(Queue[T].schedules)

    def __init__(self, inner: Queue[T], thread: LoopThread) -> None:
        self._inner = inner
        self._thread = thread

    @property
    def name(self) -> str:
        return self._inner.name

    def claim(
        self,
        n: int = 1,
        wait: Duration = 0.0,
        lease: Duration | None = None,
        worker: str | None = None,
        group: str | None = None,
        key: str | None = None,
        auto_complete: bool = False,
    ) -> list[SyncClaim[T]]:
        """As `Queue.claim`. What an interrupted caller would have got is given back."""
        work = partial(self._inner.claim, n, wait, lease, worker, group, key, auto_complete)
        return _twins(self._thread.run(work, give_back), self._thread)

    def claims(
        self,
        n: int = 1,
        lease: Duration | None = None,
        worker: str | None = None,
        group: str | None = None,
        key: str | None = None,
        auto_complete: bool = False,
    ) -> Generator[SyncClaim[T], None, None]:
        """As `Queue.claims`: `for claim in mail.claims(): …`, for ever."""
        return _each(self._inner.claims(n, lease, worker, group, key, auto_complete), self._thread)

    def complete_many(self, claims: Iterable[SyncClaim[T]]) -> list[BucketqError | None]:
        """As `Queue.complete_many`: for each claim, in order, None or its error."""
        found = [as_claim(claim) for claim in claims]
        return self._thread.run(lambda: self._inner.complete_many(found))

    def __repr__(self) -> str:
        return repr(self._inner)


_left_open: set[SyncClient] = set()


@atexit.register
def _close_left_open() -> None:
    """Whoever forgot to close a client still ends in peace."""
    for client in list(_left_open):
        with suppress(BucketqError):
            client.close()


class SyncClient:
    """As `Client`, blocking; made by `connect_sync`. Threads may share it; processes may not."""

    transact = Verb(Client.transact)
    queues = Verb(Client.queues)
    upkeep = Verb(Client.upkeep)

    def __init__(self, inner: Client, thread: LoopThread) -> None:
        self._inner = inner
        self._thread = thread
        _left_open.add(self)

    @overload
    def queue(self, name: str, type: None = None) -> SyncQueue[Any]: ...
    @overload
    def queue(self, name: str, type: type[T]) -> SyncQueue[T]: ...
    def queue(self, name: str, type: Any = None) -> SyncQueue[Any]:
        """As `Client.queue`."""
        return SyncQueue(self._inner.queue(name, type), self._thread)

    def claim(
        self,
        queues: Iterable[str] | str | None = None,
        n: int = 1,
        wait: Duration = 0.0,
        lease: Duration | None = None,
        worker: str | None = None,
        group: str | None = None,
        key: str | None = None,
        auto_complete: bool = False,
    ) -> list[SyncClaim[Any]]:
        """As `Client.claim`. What an interrupted caller would have got is given back."""
        work = partial(self._inner.claim, queues, n, wait, lease, worker, group, key, auto_complete)
        return _twins(self._thread.run(work, give_back), self._thread)

    def close(self) -> None:
        """Answer every call under way, of all threads, and end the client's thread. Again: does nothing."""
        try:
            with suppress(Stopped):
                self._thread.run(self._inner.close)
        finally:
            self._thread.stop()
            _left_open.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _twins(claims: list[Claim[T]], thread: LoopThread) -> list[SyncClaim[T]]:
    return [SyncClaim(claim, thread) for claim in claims]


async def _next(claims: AsyncGenerator[Claim[T], None]) -> Claim[T]:
    return await anext(claims)


def _each(claims: AsyncGenerator[Claim[T], None], thread: LoopThread) -> Generator[SyncClaim[T], None, None]:
    try:
        while True:
            yield SyncClaim(thread.run(partial(_next, claims), Claim.release), thread)
    except GeneratorExit:
        # a loop that was abandoned may be collected in any thread, even the client's own; that one closes it by itself
        if not thread.is_current():
            with suppress(BucketqError):
                thread.run(partial(_closed, claims))
        raise


async def _closed(claims: AsyncGenerator[Claim[T], None]) -> None:
    await claims.aclose()
