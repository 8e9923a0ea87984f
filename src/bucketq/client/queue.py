"""A queue as callers use it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar, Unpack

from msgspec import Struct

from bucketq.client import checks
from bucketq.client.changes import QueueOptions, QueueSettings, queue_changes, queue_settings
from bucketq.client.claim import Claim, as_claim
from bucketq.client.codecs import Codec
from bucketq.client.job import Job
from bucketq.client.parts import Push, merged, push_item
from bucketq.client.schedules import CatchUp, Schedule, schedule_row
from bucketq.client.session import Session
from bucketq.client.stream import POLL_WAIT_S, HeldClaims
from bucketq.client.taking import claim_command, complete_many, take
from bucketq.errors import BucketqError, SettingInvalid
from bucketq.queue import commands as c
from bucketq.queue.answers import GroupInfo, StatsInfo
from bucketq.queue.commands import JobStatus, PushItem
from bucketq.settings import Duration, shown

T = TypeVar("T")


class Group(Struct, frozen=True):
    """A consumer group of a queue and its counts."""

    queue: str
    name: str
    created_at: datetime | None
    stats: StatsInfo


class Queue(Generic[T]):
    """A named line of jobs; made by `client.queue`. It exists from the first push or `configure` on.

    Durations are seconds or timedeltas. Every call may raise `SettingInvalid` (bad input, found before anything is
    sent), `StoreError`, `Conflict` and `OutcomeUnknown`.
    """

    __slots__ = ("_codec", "_session", "name")

    def __init__(self, name: str, codec: Codec[T], session: Session) -> None:
        self.name = name
        self._codec = codec
        self._session = session

    async def push(
        self,
        payload: T,
        priority: int = 0,
        delay: Duration = 0.0,
        run_at: datetime | None = None,
        key: str | None = None,
        dedup: str | None = None,
        dedup_window: Duration | None = None,
        max_attempts: int | None = None,
        headers: dict[str, str] | None = None,
        ttl: Duration | None = None,
    ) -> Job[T]:
        """Store a job; when this returns, it is durable. Lower priority numbers go first; `run_at` has a time zone; a
        second push with the same `dedup` inside its window returns the first job; after `ttl` an unclaimed job expires.

        Raises `PayloadInvalid`, `PayloadTooLarge` and `QueueFull`.
        """
        raw, binary = self._codec.encode(payload)
        item = push_item(raw, binary, priority, delay, run_at, key, dedup, dedup_window, max_attempts, headers, ttl)
        (info,) = await self._session.port.call(c.Push(self.name, (item,)))
        return Job(info, self._codec)

    async def push_many(
        self,
        payloads: Iterable[T | Push],
        priority: int = 0,
        delay: Duration = 0.0,
        run_at: datetime | None = None,
        key: str | None = None,
        dedup: str | None = None,
        dedup_window: Duration | None = None,
        max_attempts: int | None = None,
        headers: dict[str, str] | None = None,
        ttl: Duration | None = None,
    ) -> list[Job[T]]:
        """Store jobs, all or none, in one commit. Items are payloads, or `Push(payload, …)` with options that go
        before those of the call. Raises what `push` raises."""
        if isinstance(payloads, str | bytes | bytearray | memoryview | Mapping) or not isinstance(payloads, Iterable):
            kind = type(payloads).__name__
            raise SettingInvalid(f"push_many takes several payloads, as in a list; this {kind} is one: push it")
        common = {
            "priority": priority,
            "delay": delay,
            "run_at": run_at,
            "key": key,
            "dedup": dedup,
            "dedup_window": dedup_window,
            "max_attempts": max_attempts,
            "headers": headers,
            "ttl": ttl,
        }
        items = tuple(self._item(payload, common) for payload in payloads)
        _check_count("push_many", items)
        infos = await self._session.port.call(c.Push(self.name, items)) if items else []
        return [Job(info, self._codec) for info in infos]

    async def claim(
        self,
        n: int = 1,
        wait: Duration = 0.0,
        lease: Duration | None = None,
        worker: str | None = None,
        group: str | None = None,
        key: str | None = None,
        auto_complete: bool = False,
    ) -> list[Claim[T]]:
        """Take up to `n` jobs, waiting up to `wait` seconds for the first; fewer, or none, if there are no more.

        On a typed queue a job whose payload is not of the type is failed with `PayloadInvalid` and left out.
        `auto_complete` completes them in the same breath: at most once, for work that may be lost.
        """
        command = claim_command(self._session, (self.name,), n, lease, worker, group, key, auto_complete)
        return await take(self._session, command, checks.WAIT.check("wait", wait), self._codec)

    def claims(
        self,
        n: int = 1,
        lease: Duration | None = None,
        worker: str | None = None,
        group: str | None = None,
        key: str | None = None,
        auto_complete: bool = False,
    ) -> AsyncGenerator[Claim[T], None]:
        """Claims one by one, for ever. Up to `n` are fetched at once; those that wait for their turn are kept alive,
        and released if the loop is left before."""
        command = claim_command(self._session, (self.name,), n, lease, worker, group, key, auto_complete)
        return self._claims(command)

    async def complete_many(self, claims: Iterable[Claim[T]]) -> list[BucketqError | None]:
        """Complete claims in one commit, each alone: for each, in order, None or its error (such as `LeaseLost`).
        Errors of single claims are returned, not raised."""
        if not isinstance(claims, Iterable):
            raise SettingInvalid(f"complete_many takes claims, as in a list; got {shown(claims)}")
        found = [as_claim(claim) for claim in claims]
        _check_count("complete_many", found)
        return await complete_many(self._session, found)

    async def get(self, job_id: str) -> Job[T]:
        """Raises `JobNotFound`."""
        return Job(await self._session.port.call(c.Get(self.name, checks.job_id(job_id))), self._codec)

    async def jobs(
        self, status: JobStatus | None = None, limit: int = 100, after: str | None = None, group: str | None = None
    ) -> list[Job[T]]:
        """Jobs in the order in which they were pushed; `after` is the id of the last one seen."""
        command = c.ListJobs(
            self.name,
            checks.status(status),
            checks.COUNT.check("limit", limit),
            None if after is None else checks.job_id(after, "after"),
            None if group is None else checks.group(group),
        )
        return [Job(info, self._codec) for info in await self._session.port.call(command)]

    async def stats(self, group: str | None = None) -> StatsInfo:
        """Counts; without a group, the sum over the queue's groups."""
        stats: StatsInfo = await self._session.port.call(
            c.Stats(self.name, None if group is None else checks.group(group))
        )
        return stats

    async def cancel(self, job_id: str) -> Job[T]:
        """End a job that waits or runs (its worker gets `LeaseLost`); one that has ended is left as it is. Raises
        `JobNotFound`."""
        return Job(await self._session.port.call(c.Cancel(self.name, checks.job_id(job_id))), self._codec)

    async def retry(self, job_id: str) -> Job[T]:
        """Bring a dead job back under the same id, at the end of the line. Raises `JobNotFound`, also for a job that
        is done, cancelled or expired."""
        return Job(await self._session.port.call(c.Retry(self.name, checks.job_id(job_id))), self._codec)

    async def purge(self, status: JobStatus | None = None) -> int:
        """Remove jobs of that status, or all but the running ones; how many. Not atomic: in steps of 1,000."""
        purged: int = await self._session.port.call(c.Purge(self.name, checks.status(status)))
        return purged

    async def pause(self) -> None:
        """Give no claims from now on; everything else goes on."""
        await self._session.port.call(c.Pause(self.name))

    async def resume(self) -> None:
        """Give claims again."""
        await self._session.port.call(c.Resume(self.name))

    async def configure(self, **changes: Unpack[QueueOptions]) -> QueueSettings:
        """Change settings of the queue, for everybody; those not named stay. `rate` is claims per second, or text
        such as "100/m"; `backoff` is its first wait, or a `Backoff`; None takes a limit away."""
        row = await self._session.port.call(c.Configure(self.name, queue_changes(**changes)))
        return queue_settings(row)

    async def settings(self) -> QueueSettings:
        """The queue's settings; the defaults if it does not exist yet."""
        return queue_settings(await self._session.port.call(c.Settings(self.name)))

    async def subscribe(self, group: str, start: Literal["new", "all"] | datetime = "new") -> Group:
        """Add a consumer group, which sees jobs pushed from now on, all that are there, or those pushed since a time.
        One that exists is left as it is. Raises `QueueFull` beyond 32."""
        name = checks.name("group", group)
        return _group(await self._session.port.call(c.Subscribe(self.name, name, _start_us(start))))

    async def unsubscribe(self, group: str) -> bool:
        """Remove a group and where the jobs stand for it; whether there was one."""
        there: bool = await self._session.port.call(c.Unsubscribe(self.name, checks.name("group", group)))
        return there

    async def groups(self) -> list[Group]:
        """The queue's consumer groups; none on a queue that nobody subscribed to."""
        return [_group(info) for info in await self._session.port.call(c.ListGroups(self.name))]

    async def schedule(
        self,
        name: str,
        payload: T,
        cron: str | None = None,
        every: Duration | None = None,
        timezone: str = "UTC",
        catch_up: CatchUp = "one",
        priority: int = 0,
        key: str | None = None,
        max_attempts: int | None = None,
        headers: dict[str, str] | None = None,
        ttl: Duration | None = None,
        paused: bool = False,
    ) -> Schedule[T]:
        """Make a job at every tick of `cron` (in `timezone`) or `every` so many seconds. A schedule of that name, of
        whatever queue, is replaced. `catch_up` says what missed ticks make: nothing (skip), one job, or all."""
        row = schedule_row(
            name,
            self.name,
            payload,
            self._codec,
            cron=cron,
            every=every,
            timezone=timezone,
            catch_up=catch_up,
            paused=paused,
            priority=priority,
            key=key,
            max_attempts=max_attempts,
            headers=headers,
            ttl=ttl,
        )
        return Schedule(await self._session.port.call(c.PutSchedule(row)), self._codec)

    async def unschedule(self, name: str) -> bool:
        """Remove a schedule of this queue; whether there was one of that name."""
        there: bool = await self._session.port.call(c.RemoveSchedule(checks.name("schedule", name), self.name))
        return there

    async def schedules(self) -> list[Schedule[T]]:
        """Those of this queue, by name."""
        return [Schedule(row, self._codec) for row in await self._session.port.call(c.ListSchedules(self.name))]

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"

    def _item(self, payload: T | Push, common: dict[str, Any]) -> PushItem:
        if isinstance(payload, Push):
            return push_item(*self._codec.encode(payload.payload), **merged(common, payload.options))
        return push_item(*self._codec.encode(payload), **common)

    async def _claims(self, command: c.Claim) -> AsyncGenerator[Claim[T], None]:
        held: HeldClaims[T] = HeldClaims(self._session)
        try:
            while True:
                held.fill(await take(self._session, command, POLL_WAIT_S, self._codec))
                while claim := held.take():
                    yield claim
        finally:
            await held.give_back()


def _check_count(what: str, items: tuple[Any, ...] | list[Any]) -> None:
    if len(items) > checks.ITEMS_MAX:
        raise SettingInvalid(f"{what} is one write, of at most {checks.ITEMS_MAX:,} jobs; got {len(items):,}")


def _start_us(start: object) -> int | None:
    if start == "new":
        return None
    if start == "all":
        return 0
    if isinstance(start, datetime):
        return checks.moment_us("start", start)
    raise SettingInvalid(f"start must be 'new', 'all' or a datetime with a time zone; got {shown(start)}")


def _group(info: GroupInfo) -> Group:
    return Group(info.queue, info.name, checks.moment(info.created_us), info.stats)
