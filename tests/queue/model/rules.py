"""The moves of which the model tests are made. A class inherits the moves it wants and says with which values.

Hypothesis draws three small numbers for each step: the move and two arguments, which are looked up in the class's
tuples. That is the cheapest way to draw, and no run is without pushes and claims, as it would be if every move were a
rule of its own (Hypothesis leaves rules out at random). What the numbers meant is told by the story of a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from msgspec import Raw
from msgspec.structs import replace

from bucketq.queue import commands as c
from bucketq.queue.rows import NAMELESS, Backoff, ScheduleRow
from tests.queue.model.pair import SECOND_US, Pair
from tests.queue.model.views import tell

T = TypeVar("T")
Part = c.Push | c.Complete | c.Fail | c.Release
Move = Callable[[Any, int, int], None]

MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
QUICK = Backoff(initial_ms=1_000, factor=2.0, max_ms=4_000)
FOLDER = "2023-11-14T22"


def move(weight: int = 2) -> Callable[[Move], Move]:
    """Marks a method as a move, to be made more or less often."""

    def mark(body: Move) -> Move:
        body.weight = weight  # type: ignore[attr-defined]
        return body

    return mark


def pick(values: tuple[T, ...], index: int) -> T:
    return values[index % len(values)]


class Moves(RuleBasedStateMachine):
    """Batches, time and reloads: what every class has."""

    queues: ClassVar[tuple[str, ...]] = ("a",)
    groups: ClassVar[tuple[str, ...]] = (NAMELESS,)
    settings: ClassVar[tuple[dict[str, object], ...]] = ({"lease_ms": 4_000, "max_attempts": 2, "backoff": QUICK},)
    waits_us: ClassVar[tuple[int, ...]] = (SECOND_US // 2, SECOND_US, 3 * SECOND_US, 10 * SECOND_US)
    moves: ClassVar[tuple[Move, ...]] = ()

    def __init_subclass__(cls) -> None:
        found = [getattr(cls, name) for name in dir(cls)]
        cls.moves = tuple(body for body in found for _ in range(getattr(body, "weight", 0)))

    def __init__(self) -> None:
        super().__init__()
        self.pair = Pair()
        self.stale: c.Handle | None = None
        self.failed = False

    @initialize(which=st.integers(0, 31))
    def configure_first(self, which: int) -> None:
        for index, queue in enumerate(self.queues):
            self.pair.ask(c.Configure(queue, dict(pick(self.settings, which + index))))

    @rule(which=st.integers(0, 255), first=st.integers(0, 31), second=st.integers(0, 7))
    def step(self, which: int, first: int, second: int) -> None:
        self.tell_story(pick(self.moves, which), first, second)

    def teardown(self) -> None:
        if not self.failed:
            self.tell_story(type(self).finish, 0, 0)

    def tell_story(self, body: Move, first: int, second: int) -> None:
        try:
            body(self, first, second)
        except Exception as error:
            self.failed = True
            error.add_note("\n".join(["the story:", *map(tell, self.pair.story)]))
            raise

    def finish(self, first: int, second: int) -> None:
        self.pair.land(upkeep=True)
        self.pair.check()

    @move()
    def land(self, first: int, second: int) -> None:
        if second == 0:
            self.pair.upkeep(limit=1 + first % 3)
        self.pair.land(upkeep=second < 4)

    @move()
    def undo(self, first: int, second: int) -> None:
        if second == 0:
            self.pair.upkeep()
        self.pair.undo()

    @move(3)
    def wait(self, first: int, second: int) -> None:
        self.pair.wait(pick(self.waits_us, first), 2 * SECOND_US if second == 0 else 0)

    @move(1)
    def look_away(self, first: int, second: int) -> None:
        if second < 4:
            self.pair.reload()
        elif second == 4:  # the wall clock was wrong, and is set right
            self.pair.leap(20 * MINUTE_US, SECOND_US // 2)
            self.pair.land(upkeep=True)
        else:
            self.pair.leap(20 * SECOND_US)
            self.pair.land(upkeep=True)

    def job_id(self, back: int) -> str:
        """The id of a job, counted from the newest; 7: of one that may have left, or not come yet."""
        jobs = self.pair.reference.jobs
        if back == 7 or not jobs:
            return f"t-{1 + self.pair.reference.next_number // 2}"
        return f"t-{sorted(jobs)[-1 - back % len(jobs)]}"

    def queue_of(self, job_id: str) -> str:
        job = self.pair.reference.jobs.get(int(job_id[2:]))
        return job.queue if job else self.queues[0]


class Pushes(Moves):
    items: ClassVar[tuple[c.PushItem, ...]] = (c.PushItem(Raw(b"1")),)

    @move(4)
    def push(self, first: int, second: int) -> None:
        self.pair.ask(c.Push(pick(self.queues, second), (pick(self.items, first),)))

    @move()
    def push_three(self, first: int, second: int) -> None:
        items = tuple(pick(self.items, first + more * (1 + second)) for more in range(3))
        self.pair.ask(c.Push(pick(self.queues, second), items))


class Claims(Moves):
    claims: ClassVar[tuple[c.Claim, ...]] = (c.Claim(None, worker="w"), c.Claim(None, 2, lease_ms=1_500))

    @move(4)
    def claim(self, first: int, second: int) -> None:
        command = pick(self.claims, first)
        if command.queues == ():
            command = replace(command, queues=(pick(self.queues, second),))
        self.pair.ask(command)

    @move(3)
    def claim_one(self, first: int, second: int) -> None:
        self.pair.ask(c.Claim((pick(self.queues, second),), group=pick(self.groups, first)))

    @move(3)
    def complete(self, first: int, second: int) -> None:
        self.pair.ask(c.Complete(self.handle(second), Raw(b"7") if first % 2 else None))

    @move(3)
    def fail(self, first: int, second: int) -> None:
        retry_in_us = pick((None, None, None, 0, SECOND_US, 10 * SECOND_US), first)
        self.pair.ask(c.Fail(self.handle(second), f"error {first}", retry_in_us, dead=first % 6 == 2))

    @move()
    def release(self, first: int, second: int) -> None:
        self.pair.ask(c.Release(self.handle(second), SECOND_US if first % 2 else 0))

    @move()
    def heartbeat(self, first: int, second: int) -> None:
        self.pair.ask(c.Heartbeat(self.handle(second), Raw(b"0.5") if first % 2 else None))

    def handle(self, back: int) -> c.Handle:
        """A claim that runs; 6: one that may have ended; 7: one that is not yet. Claims first if there is none."""
        reference = self.pair.reference
        if back == 6 and self.stale is not None:
            return self.stale
        if not reference.armed:
            self.claim(back, back)
        running = sorted(reference.armed)
        if not running:
            return c.Handle(self.queues[0], self.job_id(0), 1, self.groups[-1])
        n, group = running[-1 - back % len(running)]
        token = reference.runs[n, group].token
        handle = c.Handle(reference.jobs[n].queue, f"t-{n}", token + (back == 7), group)
        if n % 4 != 1 or self.stale is None:
            self.stale = handle
        return handle


class Together(Claims):
    """Several claims in one command."""

    @move()
    def complete_many(self, first: int, second: int) -> None:
        parts = tuple(c.Complete(self.handle((first + index) % 8)) for index in (0, second, 1))
        self.pair.ask(c.CompleteMany(parts))

    @move()
    def transact(self, first: int, second: int) -> None:
        push = c.Push(pick(self.queues, first), (c.PushItem(Raw(b"2")),))
        handle, other = self.handle(second), self.handle((second + 1) % 8)
        kinds: tuple[Part, ...] = (
            c.Complete(handle, Raw(b"8")),
            c.Fail(handle, "in a transaction"),
            c.Release(handle, SECOND_US),
        )
        part = pick(kinds, first)
        self.pair.ask(c.Transact((part, push) if first < 20 else (push, part, c.Complete(other))))


class ByName(Moves):
    """Commands on one job that is named."""

    statuses: ClassVar[tuple[c.JobStatus | None, ...]] = (None, "ready", "scheduled", "running", "dead", "done")

    @move()
    def cancel(self, first: int, second: int) -> None:
        job_id = self.job_id(second)
        self.pair.ask(c.Cancel(self.queue_of(job_id), job_id))

    @move()
    def retry(self, first: int, second: int) -> None:
        dead = sorted(n for (n, _), run in self.pair.reference.runs.items() if run.status == "dead")
        job_id = f"t-{dead[first % len(dead)]}" if dead and second < 4 else self.job_id(second)
        self.pair.ask_to_the_end(c.Retry(self.queue_of(job_id), job_id))

    @move()
    def read(self, first: int, second: int) -> None:
        queue = pick(self.queues, first)
        self.pair.ask(c.Get(queue, self.job_id(second)))
        self.pair.ask(c.Stats(queue, pick((None, *self.groups), second)))
        after = self.job_id(second) if second % 2 else None
        group = pick(self.groups, first) if second == 0 else None
        self.pair.ask(c.ListJobs(queue, pick(self.statuses, first), 1 + second, after, group))


class Changes(Moves):
    """Settings change while jobs are under way."""

    changes: ClassVar[tuple[dict[str, object], ...]] = ()

    @move()
    def configure(self, first: int, second: int) -> None:
        self.pair.ask(c.Configure(pick(self.queues, second), dict(pick(self.changes, first))))

    @move(1)
    def pause(self, first: int, second: int) -> None:
        self.pair.ask((c.Pause if first % 2 else c.Resume)(pick(self.queues, second)))


class Groups(Moves):
    starts_us: ClassVar[tuple[int | None, ...]] = (None, 0, -2 * SECOND_US)

    @move()
    def subscribe(self, first: int, second: int) -> None:
        start_us = pick(self.starts_us, first)
        if start_us is not None and start_us < 0:
            start_us += self.pair.now_us
        self.pair.ask(c.Subscribe(pick(self.queues, second), pick(self.groups[1:], first), start_us))

    @move()
    def unsubscribe(self, first: int, second: int) -> None:
        command = c.Unsubscribe(pick(self.queues, second), pick(self.groups[1:], first))
        if first < 16:
            self.pair.ask(command)
        else:
            self.pair.ask_to_the_end(command)


class Schedules(Moves):
    schedules: ClassVar[tuple[ScheduleRow, ...]] = ()

    @move()
    def put_schedule(self, first: int, second: int) -> None:
        self.pair.ask(c.PutSchedule(pick(self.schedules, first)))

    @move()
    def change_schedule(self, first: int, second: int) -> None:
        name = pick(self.schedules, first).name
        row = self.pair.reference.schedules.get(name)
        if second == 0 or row is None:
            self.pair.ask(c.RemoveSchedule(name, None if first % 2 else "a"))
        else:
            self.pair.ask(c.PutSchedule(replace(row, paused=not row.paused, next_us=0)))


class Archive(Moves):
    @move(1)
    def seal(self, first: int, second: int) -> None:
        self.pair.ask(c.Seal(FOLDER, endings_max=1 + second))

    @move(1)
    def drop(self, first: int, second: int) -> None:
        segment = self.pair.reference.segment
        self.pair.ask(c.Drop(segment.k if segment is not None and second != 7 else 9))

    @move(1)
    def prune(self, first: int, second: int) -> None:
        self.pair.ask(c.Prune(1 + first % (1 + self.pair.reference.segments)))

    @move(1)
    def archive_all(self, first: int, second: int) -> None:
        self.pair.archive()


class Purges(Moves):
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

    @move(1)
    def purge(self, first: int, second: int) -> None:
        self.pair.ask_to_the_end(c.Purge(pick(self.queues, first), pick(self.purged, second)))
