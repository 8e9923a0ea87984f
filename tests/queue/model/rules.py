"""The steps of which the model tests are made. A class picks the rules it wants and says with which values.

Rules draw small numbers and look the value up in their class's tuples: that is the cheapest draw there is, and the
story of a failure (`Pair.story`) lists the commands themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from bucketq.queue import commands as c
from bucketq.queue.answers import JobInfo
from bucketq.queue.rows import NAMELESS, Backoff, ScheduleRow
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from msgspec import Raw
from msgspec.structs import replace

from tests.queue.model.pair import SECOND_US, Pair
from tests.queue.model.views import tell

T = TypeVar("T")
which = st.integers(0, 31)
few = st.integers(0, 7)
flag = st.booleans()

MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
HANDLES_MAX = 8
QUICK = Backoff(initial_ms=1_000, factor=2.0, max_ms=4_000)


def told(body: Callable[..., None]) -> Callable[..., None]:
    """A failure of this step tells the whole story."""

    @functools.wraps(body)
    def tells(self: Steps, **drawn: Any) -> None:
        try:
            body(self, **drawn)
        except Exception as error:
            self.failed = True
            error.add_note("\n".join(["the story:", *map(tell, self.pair.story)]))
            raise

    return tells


def step(**strategies: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Any]:
    return lambda body: rule(**strategies)(told(body))


class Steps(RuleBasedStateMachine):
    """Batches, time and reloads: what every class has."""

    queues: ClassVar[tuple[str, ...]] = ("a",)
    groups: ClassVar[tuple[str, ...]] = (NAMELESS,)
    settings: ClassVar[tuple[dict[str, object], ...]] = ({"lease_ms": 4_000, "max_attempts": 2, "backoff": QUICK},)
    waits_us: ClassVar[tuple[int, ...]] = (SECOND_US // 2, SECOND_US, 3 * SECOND_US, 10 * SECOND_US)

    def __init__(self) -> None:
        super().__init__()
        self.pair = Pair()
        self.handles: list[c.Handle] = []
        self.failed = False

    @initialize(setting=which)
    def configured(self, setting: int) -> None:
        for index, queue in enumerate(self.queues):
            self.pair.ask(c.Configure(queue, dict(pick(self.settings, setting + index))))

    @step(upkeep=flag)
    def land(self, upkeep: bool) -> None:
        self.pair.land(upkeep)

    @step(upkeep=flag)
    def undo(self, upkeep: bool) -> None:
        if upkeep:
            self.pair.upkeep()
        self.pair.undo()

    @step(index=few, late=flag)
    def wait(self, index: int, late: bool) -> None:
        self.pair.wait(pick(self.waits_us, index), 2 * SECOND_US if late else 0)

    @step(reload=flag)
    def not_looking(self, reload: bool) -> None:
        if reload:
            self.pair.reload()
        else:
            self.pair.leap(20 * SECOND_US)
            self.pair.land(upkeep=True)

    def teardown(self) -> None:
        if not self.failed:
            self.finish()

    @told
    def finish(self) -> None:
        self.pair.land(upkeep=True)
        self.pair.check()

    def job_id(self, back: int) -> str:
        """The id of a job, counted from the newest."""
        return f"t-{max(1, self.pair.reference.next_number - 1 - back)}"

    def queue_of(self, job_id: str) -> str:
        job = self.pair.reference.jobs.get(int(job_id[2:]))
        return job.queue if job else self.queues[0]

    def handle(self, back: int) -> c.Handle:
        """A claim, counted from the newest; some were ended long ago, and a few never were."""
        if not self.handles:
            return c.Handle(self.queues[0], "t-1", 1)
        found = self.handles[back % len(self.handles)]
        return replace(found, token=found.token + 1) if back == 7 else found

    def remember(self, answer: object) -> None:
        if isinstance(answer, list):
            for info in answer:
                assert isinstance(info, JobInfo)
                assert info.run is not None
                self.handles.insert(0, c.Handle(info.queue, info.id, info.run.token, info.group))
        del self.handles[HANDLES_MAX:]


def pick(values: tuple[T, ...], index: int) -> T:
    return values[index % len(values)]


class Pushes(Steps):
    items: ClassVar[tuple[c.PushItem, ...]] = (c.PushItem(Raw(b"1")),)

    @step(queue=few, index=which)
    def push(self, queue: int, index: int) -> None:
        self.pair.ask(c.Push(pick(self.queues, queue), (pick(self.items, index),)))

    @step(queue=few, index=which)
    def push_three(self, queue: int, index: int) -> None:
        items = tuple(pick(self.items, index + more) for more in range(3))
        self.pair.ask(c.Push(pick(self.queues, queue), items))


class Claims(Steps):
    claims: ClassVar[tuple[c.Claim, ...]] = (c.Claim(None, worker="w"), c.Claim(None, 2, lease_ms=1_500))

    @step(queue=few, index=which)
    def claim(self, queue: int, index: int) -> None:
        command = pick(self.claims, index)
        if command.queues == ():
            command = replace(command, queues=(pick(self.queues, queue),))
        answer = self.pair.ask(command)
        if not command.auto_complete:
            self.remember(answer)

    @step(index=few, result=flag)
    def complete(self, index: int, result: bool) -> None:
        self.pair.ask(c.Complete(self.handle(index), Raw(b"7") if result else None))

    @step(index=few, how=st.integers(0, 5))
    def fail(self, index: int, how: int) -> None:
        retry_in_us = pick((None, None, None, 0, SECOND_US, 10 * SECOND_US), how)
        self.pair.ask(c.Fail(self.handle(index), f"error {how}", retry_in_us, dead=how == 2))

    @step(index=few, delay=flag)
    def release(self, index: int, delay: bool) -> None:
        self.pair.ask(c.Release(self.handle(index), SECOND_US if delay else 0))

    @step(index=few, progress=flag)
    def heartbeat(self, index: int, progress: bool) -> None:
        self.pair.ask(c.Heartbeat(self.handle(index), Raw(b"0.5") if progress else None))


class Together(Claims):
    """Several claims in one command."""

    @step(first=few, second=few)
    def complete_many(self, first: int, second: int) -> None:
        parts = tuple(c.Complete(self.handle(index)) for index in (first, second, first + 1))
        self.pair.ask(c.CompleteMany(parts))

    @step(index=few, how=few)
    def transact(self, index: int, how: int) -> None:
        push = c.Push(pick(self.queues, how), (c.PushItem(Raw(b"2")),))
        part = pick(
            (
                c.Complete(self.handle(index), Raw(b"8")),
                c.Fail(self.handle(index), "in a transaction"),
                c.Release(self.handle(index), SECOND_US),
            ),
            how,
        )
        parts = (part, push) if how < 4 else (push, part, c.Complete(self.handle(index + 1)))
        self.pair.ask(c.Transact(parts))


class ByName(Steps):
    """Commands on one job that is named."""

    statuses: ClassVar[tuple[c.JobStatus | None, ...]] = (None, "ready", "scheduled", "running", "dead", "done")

    @step(index=few)
    def cancel(self, index: int) -> None:
        job_id = self.job_id(index)
        self.pair.ask(c.Cancel(self.queue_of(job_id), job_id))

    @step(index=few)
    def retry(self, index: int) -> None:
        job_id = self.job_id(index)
        self.pair.ask_to_the_end(c.Retry(self.queue_of(job_id), job_id))

    @step(index=few, queue=few)
    def read(self, index: int, queue: int) -> None:
        self.pair.ask(c.Get(pick(self.queues, queue), self.job_id(index)))
        self.pair.ask(c.Stats(pick(self.queues, queue), pick((None, *self.groups), index)))
        after = self.job_id(index) if index % 2 else None
        self.pair.ask(c.ListJobs(pick(self.queues, queue), pick(self.statuses, index), 1 + index, after))


class Changes(Steps):
    """Settings change while jobs are under way."""

    changes: ClassVar[tuple[dict[str, object], ...]] = ()

    @step(queue=few, index=which)
    def configure(self, queue: int, index: int) -> None:
        self.pair.ask(c.Configure(pick(self.queues, queue), dict(pick(self.changes, index))))

    @step(queue=few, index=few)
    def pause(self, queue: int, index: int) -> None:
        self.pair.ask((c.Pause if index == 0 else c.Resume)(pick(self.queues, queue)))


class Groups(Steps):
    starts_us: ClassVar[tuple[int | None, ...]] = (None, 0, -2 * SECOND_US)

    @step(queue=few, group=few, start=few)
    def subscribe(self, queue: int, group: int, start: int) -> None:
        start_us = pick(self.starts_us, start)
        if start_us is not None and start_us < 0:
            start_us += self.pair.now_us
        self.pair.ask(c.Subscribe(pick(self.queues, queue), pick(self.groups[1:], group), start_us))

    @step(queue=few, group=few)
    def unsubscribe(self, queue: int, group: int) -> None:
        self.pair.ask_to_the_end(c.Unsubscribe(pick(self.queues, queue), pick(self.groups[1:], group)))


class Schedules(Steps):
    schedules: ClassVar[tuple[ScheduleRow, ...]] = ()

    @step(index=which)
    def put_schedule(self, index: int) -> None:
        self.pair.ask(c.PutSchedule(pick(self.schedules, index)))

    @step(index=few, remove=few)
    def change_schedule(self, index: int, remove: int) -> None:
        name = pick(self.schedules, index).name
        row = self.pair.reference.schedules.get(name)
        if remove == 0 or row is None:
            self.pair.ask(c.RemoveSchedule(name))
        else:
            self.pair.ask(c.PutSchedule(replace(row, paused=not row.paused, next_us=0)))


class Archive(Steps):
    @step(most=st.integers(1, 4))
    def seal(self, most: int) -> None:
        self.pair.ask(c.Seal("2023-11-14T22", endings_max=most))

    @step(wrong=few)
    def drop(self, wrong: int) -> None:
        segment = self.pair.reference.segment
        if segment is not None and wrong != 7:
            self.pair.ask(c.Drop(segment.k))

    @step()
    def archive_all(self) -> None:
        self.pair.archive()


class Purges(Steps):
    purged: ClassVar[tuple[c.JobStatus | None, ...]] = (
        None,
        "ready",
        "scheduled",
        "running",
        "dead",
        "done",
        "cancelled",
        "expired",
    )

    @step(queue=few, status=few)
    def purge(self, queue: int, status: int) -> None:
        self.pair.ask_to_the_end(c.Purge(pick(self.queues, queue), pick(self.purged, status)))
