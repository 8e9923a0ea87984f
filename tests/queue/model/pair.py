"""The machine and the reference side by side, and a follower that only replays what the machine committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from bucketq.errors import BucketqError
from bucketq.queue import commands as c
from bucketq.queue.answers import AwaitArchive, Partial, StatsInfo
from bucketq.queue.events import Event
from bucketq.queue.invariants import violations
from bucketq.queue.machine import Machine
from bucketq.queue.snapshot import Snapshot
from bucketq.queue.state import State
from tests.queue.model.reference import Reference
from tests.queue.model.views import tell, view

SECOND_US = 1_000_000
START_US = 1_700_000_000 * SECOND_US
SHARES = (0.0, 0.5, 0.25, 0.75)
CHECK_EVERY = 3

_events = msgspec.json.Decoder(list[Event])
_snapshot = msgspec.json.Decoder(Snapshot)


class Draws:
    """Random numbers that are none, and how many were taken."""

    def __init__(self) -> None:
        self.taken = 0

    def __call__(self) -> float:
        self.taken += 1
        return SHARES[self.taken % len(SHARES)]


class Pair:
    """Asks both the same and compares what they say. Batches open by themselves; `land` and `undo` end them."""

    def __init__(self) -> None:
        self.machine_draws, self.reference_draws = Draws(), Draws()
        self.machine = Machine(State.new(tag="t"))
        self.reference = Reference(self.reference_draws)
        self.follower = Machine(State.new(tag="t"))
        self.now_us = START_US
        self.mono_us = SECOND_US
        self.before: dict[str, Any] | None = None
        self.batches = 0
        self.story: list[object] = []

    def ask(self, command: c.Command) -> Any:
        """Decide a command in the open batch. Errors are returned, not raised."""
        self.open()
        self.story.append(command)
        mark = len(self.machine.events)
        actual = _answer(self.machine.decide, command)
        seen = self.machine.events[mark:]
        waits = isinstance(actual, AwaitArchive) and not isinstance(command, c.Unsubscribe)  # that group is leaving
        assert not (seen and (waits or isinstance(actual, BucketqError))), f"{actual!r}, and yet {seen}"
        expected = _answer(self.reference.decide, command, seen)
        assert view(actual) == view(expected), f"{tell(command)}:\n{view(actual)}\nand not\n{view(expected)}"
        assert self.machine_draws.taken == self.reference_draws.taken
        return actual

    def ask_to_the_end(self, command: c.Command) -> Any:
        """Decide a command that may have to wait for the archive or to go on in further batches."""
        while isinstance(answer := self.ask(command), (AwaitArchive, Partial)):
            self.land()
            if isinstance(answer, Partial):
                command = answer.rest
            else:
                self.archive()
        return answer

    def archive(self) -> None:
        """Seal and drop until nothing is left to seal."""
        if self.reference.segment is not None:
            self.ask(c.Drop(self.reference.segment.k))
        while (segment := self.ask(c.Seal("2023-11-14T22"))) is not None:
            self.land()
            self.ask(c.Drop(segment.k))
        self.land()

    def open(self) -> None:
        if self.before is None:
            self.before = self.reference.copy()
            self.reference.now_us = self.now_us
            self.reference.mono_us = self.mono_us
            self.machine.begin(self.now_us, self.mono_us, self.machine_draws)

    def upkeep(self, limit: int = 1_000) -> None:
        """Decide what is due: at once, or in small portions until nothing is left."""
        self.open()
        self.story.append(f"# due, {limit} at a time")
        mark = decided = len(self.machine.events)
        self.machine.decide_due(limit)
        while limit < 1_000 and len(self.machine.events) > decided:
            decided = len(self.machine.events)
            self.machine.decide_due(limit)
        self.reference.decide_due(self.machine.events[mark:])
        assert self.machine_draws.taken == self.reference_draws.taken

    def land(self, upkeep: bool = False) -> None:
        """The open batch, if any, is committed, and the follower hears of it."""
        if upkeep:
            self.upkeep()
        if self.before is None:
            return
        self.story.append("# land")
        self.before = None
        written = msgspec.json.encode(self.machine.events)
        self.machine.settle()
        self.follower.apply(_events.decode(written), self.now_us, self.mono_us)
        self.batches += 1
        if self.batches % CHECK_EVERY == 0:
            self.check()

    def undo(self) -> None:
        """The open batch never was."""
        if self.before is None:
            return
        self.story.append("# undo")
        self.machine.rollback()
        self.reference.restore(self.before)
        self.reference.turns.forget()
        self.before = None
        self.check()

    def wait(self, step_us: int, late_us: int = 0) -> None:
        """Let time pass; upkeep looks at each lease at most `late_us` after its end."""
        self.land()
        until_us = self.mono_us + step_us
        while (look_us := self._next_look_us(late_us)) is not None and look_us <= until_us:
            self.leap(max(0, look_us - self.mono_us))
            self.land(upkeep=True)
        self.leap(until_us - self.mono_us)

    def leap(self, step_us: int, mono_step_us: int | None = None) -> None:
        """Let time pass while nobody looks. The wall clock may go further than the monotonic one."""
        self.land()
        self.story.append(f"# +{step_us / SECOND_US} s" + ("" if mono_step_us is None else f" {mono_step_us}"))
        self.now_us += step_us
        self.mono_us += step_us if mono_step_us is None else mono_step_us

    def _next_look_us(self, late_us: int) -> int | None:
        reference = self.reference
        ends = [armed_us + reference.runs[of].lease_ms * 1_000 for of, armed_us in reference.armed.items()]
        return min(ends, default=-late_us - 1) + late_us if ends else None

    def reload(self) -> None:
        """Another process takes over with what is stored."""
        self.land()
        self.story.append("# reload")
        snapshot = _snapshot.decode(msgspec.json.encode(self.machine.state.rows()))
        self.machine = Machine(State.load(snapshot, mono_us=self.mono_us, now_us=self.now_us))
        self.reference.mono_us = self.mono_us
        self.reference.rearm()
        self.reference.turns.forget()
        self.check_follower()

    def check(self) -> None:
        """Everything that can be seen is the same, invariants hold, and replay leads to the same rows."""
        self.check_follower()
        broken = violations(self.machine.state)
        assert broken == [], broken
        self.open()
        for queue in self.reference.queues:
            self.look(c.ListJobs(queue, limit=10_000))
            self.look(c.Stats(queue))
            self.look(c.ListGroups(queue))
        self.look(c.ListQueues())
        self.look(c.ListSchedules())
        assert self.machine.events == []
        self.machine.rollback()
        self.before = None

    def look(self, command: c.Command) -> None:
        actual, expected = self.machine.decide(command), self.reference.decide(command, ())
        assert view(actual) == view(expected), f"{tell(command)}:\n{view(actual)}\nand not\n{view(expected)}"
        if isinstance(actual, StatsInfo):
            assert (actual.oldest_ready_age >= 0.0) if actual.ready else (actual.oldest_ready_age == 0.0)

    def check_follower(self) -> None:
        mine, replayed = _rows(self.machine.state, self.now_us), _rows(self.follower.state, self.now_us)
        assert mine == replayed, "\n".join(
            f"{tell(here)}\nreplayed: {tell(there)}"
            for here, there in zip(mine, replayed, strict=True)
            if here != there
        )


def _answer(decide: Any, command: c.Command, *seen: Sequence[Event]) -> Any:
    try:
        return decide(command, *seen)
    except BucketqError as error:
        return error


def _rows(state: State, now_us: int) -> tuple[Any, ...]:
    """The rows, each table in one order; a dedup key past its window may still be there or not."""
    snapshot = state.rows()
    root = snapshot.root
    return (
        replace(root, queues=[], groups=[], schedules=[]),
        tuple(sorted(root.queues, key=lambda row: row.name)),
        tuple(sorted(root.groups, key=lambda row: (row.queue, row.name))),
        tuple(sorted(root.schedules, key=lambda row: row.name)),
        tuple(sorted(snapshot.jobs, key=lambda record: record.job.n)),
        tuple(
            sorted((row for row in snapshot.dedups if row.until_us > now_us), key=lambda row: (row.queue, row.dedup))
        ),
    )
