"""A job in a worker's hands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from msgspec import Raw

from bucketq.client import checks
from bucketq.client.beats import Beats
from bucketq.client.codecs import Codec
from bucketq.client.job import Job
from bucketq.client.payload import encoded
from bucketq.client.session import Session
from bucketq.errors import BucketqError, LeaseLost, SettingInvalid
from bucketq.queue import commands as c
from bucketq.queue.answers import JobInfo
from bucketq.settings import Duration, Flag, shown

T = TypeVar("T")

_FLAG = Flag()


class Claim(Generic[T]):
    """A job handed to this worker for the time of its lease, under a token that no other claim of it ever has.

    End it with `complete`, `fail` or `release`; or do the work inside `async with claim:`, which beats every third of
    the lease, completes at the end, fails the job if the body raises (the exception goes on), and releases it if the
    body is cancelled. If the lease is lost, the body is cancelled and `LeaseLost` comes out. Where the body itself has
    ended the claim, nothing more is done.

    Every call raises `LeaseLost` once the lease was lost or the claim has ended.
    """

    __slots__ = ("_beats", "_body", "_codec", "_info", "_lost", "_over", "_result", "_session", "_settling", "job")

    def __init__(self, info: JobInfo, codec: Codec[T], session: Session, over: bool = False) -> None:
        self.job: Job[T] = Job(info, codec)
        self._info = info
        self._codec = codec
        self._session = session
        self._over = over
        self._lost = False
        self._settling = 0
        self._result: Raw | None = None
        self._beats: Beats | None = None
        self._body: _Body | None = None

    @property
    def payload(self) -> T:
        return self.job.payload

    @property
    def token(self) -> int:
        return self.job.token

    @property
    def lease(self) -> float:
        """Its length in seconds."""
        return self._info.run.lease_ms / 1_000 if self._info.run else 0.0

    @property
    def lost(self) -> bool:
        """Whether the lease is known to be lost."""
        return self._lost

    def set_result(self, result: Any) -> None:
        """The result with which the end of `async with claim:` completes the job. Raises `PayloadInvalid` and
        `PayloadTooLarge`."""
        self._result = self._encoded("result", result)

    async def complete(self, result: Any = None) -> None:
        """The work is done. `result` is a JSON value that stays readable for the queue's `result_ttl`. Raises
        `LeaseLost`, `PayloadInvalid` and `PayloadTooLarge`."""
        await self._settle(self._complete_command(result))

    async def fail(self, error: str | BaseException, retry_in: Duration | None = None, dead: bool = False) -> Job[T]:
        """The work failed: the attempt counts, and the job is tried again after `retry_in` seconds (else by back-off),
        or is dead after `max_attempts`, or at once if `dead`. Of the error 4,096 characters are kept. Returns the job
        as it is now."""
        return Job(await self._settle(self._fail_command(error, retry_in, dead)), self._codec)

    async def release(self, delay: Duration = 0.0) -> None:
        """Give the job back: it can be claimed again after `delay` seconds, and the attempt does not count."""
        await self._settle(self._release_command(delay))

    async def heartbeat(self, progress: Any = None) -> None:
        """Renew the lease for its full length, and say how far the work is (a JSON value). Raises `LeaseLost`."""
        raw = self._encoded("progress", progress)
        try:
            await self._session.port.call(c.Heartbeat(self._handle, raw))
        except LeaseLost:
            self._lost = True
            raise

    async def __aenter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None
        body = _Body(task)
        self._begin(body.cancel)
        self._body = body
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        body, self._body = self._body, None
        self._stop()
        if body is not None and body.was_cancelled_alone() and isinstance(error, asyncio.CancelledError):
            raise self._lease_lost() from error
        if not isinstance(error, GeneratorExit):  # a coroutine that is being closed can't wait
            await self._finish(error)

    def __repr__(self) -> str:
        return f"<Claim of job {self.job.id} of {self.job.queue}, token {self.token}>"

    @property
    def _handle(self) -> c.Handle:
        info = self._info
        return c.Handle(info.queue, info.id, self.token, info.group)

    def _complete_command(self, result: Any = None) -> c.Complete:
        return c.Complete(self._handle, self._result if result is None else self._encoded("result", result))

    def _fail_command(self, error: str | BaseException, retry_in: Duration | None, dead: bool) -> c.Fail:
        retry_us = None if retry_in is None else checks.us(checks.DELAY.check("retry_in", retry_in))
        return c.Fail(self._handle, checks.error_text(error), retry_us, _FLAG.check("dead", dead))

    def _release_command(self, delay: Duration) -> c.Release:
        return c.Release(self._handle, checks.us(checks.DELAY.check("delay", delay)))

    def _encoded(self, what: str, value: Any) -> Raw | None:
        return None if value is None else encoded(what, value, self._session.settings.payload_bytes_max)

    def _lease_lost(self) -> LeaseLost:
        return LeaseLost(f"job {self.job.id}: the lease was lost while the work was going on")

    async def _settle(self, command: c.Complete | c.Fail | c.Release) -> Any:
        self._settling += 1
        try:
            answer = await self._session.port.call(command)
        except LeaseLost:
            self._over = self._lost = True
            raise
        finally:
            self._settling -= 1
        self._over = True
        return answer

    def _begin(self, on_lost: Callable[[], None]) -> None:
        """Start to beat. Must run on the client's event loop."""
        if self._beats is not None:
            raise BucketqError(f"job {self.job.id}: its claim is already in use by another `with`")
        if self._lost:
            raise self._lease_lost()
        if self._over:
            if self._info.status == "running":
                raise LeaseLost(f"job {self.job.id}: this claim has ended: it was completed, failed or released")
            return  # it was completed as it was claimed: there is nothing to keep

        def lost() -> None:
            # a beat that was overtaken by the claim's own end is no loss, and what the body knows it need not hear
            if not (self._over or self._settling or self._lost):
                self._lost = True
                on_lost()

        self._beats = Beats(self._session.clock, self.lease, self._beat, lost)

    async def _begin_work(self) -> None:
        """For the blocking twin, whose body can't be cancelled."""
        self._begin(lambda: None)

    async def _end_work(self, error: BaseException | None) -> None:
        self._stop()
        await self._finish(error)

    async def _beat(self) -> None:
        await self._session.port.call(c.Heartbeat(self._handle))

    def _stop(self) -> None:
        if self._beats is not None:
            self._beats.stop()
            self._beats = None

    async def _finish(self, error: BaseException | None) -> None:
        """End the claim as the work ended, unless it has been ended."""
        if self._over:
            return
        if self._lost:
            if error is None:
                raise self._lease_lost()
        elif error is None:
            await self.complete()
        elif isinstance(error, Exception):
            await self._record(error)
        else:
            with suppress(BucketqError):  # the lease will run out
                await self.release()

    async def _record(self, error: Exception) -> None:
        try:
            await self.fail(error)
        except BucketqError as unrecorded:
            error.add_note(f"bucketq: this failure of job {self.job.id} was not recorded: {unrecorded}")


class _Body:
    """The task inside `async with claim:`, and whether the lost lease has cancelled it. The counting is that of
    `asyncio.timeout`: a cancellation from outside at the same time must not be taken for ours."""

    __slots__ = ("_before", "_cancelled", "_task")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = task
        self._before = task.cancelling()
        self._cancelled = False

    def cancel(self) -> None:
        self._cancelled = True
        self._task.cancel()

    def was_cancelled_alone(self) -> bool:
        """Takes our own cancellation back; True if there was one and no other."""
        return self._cancelled and self._task.uncancel() <= self._before


def as_claim(value: object) -> Claim[Any]:
    """The claim that is meant, also by its blocking twin."""
    claim = getattr(value, "_inner", value)
    if not isinstance(claim, Claim):
        raise SettingInvalid(f"this must be a claim, as `claim` returns it; got {shown(value)}")
    return claim


@contextmanager
def settling(claims: Sequence[Claim[Any]]) -> Iterator[None]:
    """While one command ends several claims: their heartbeats may be overtaken."""
    for claim in claims:
        claim._settling += 1
    try:
        yield
    finally:
        for claim in claims:
            claim._settling -= 1
