"""A desk to drive the state machine by hand: one command a batch, time in seconds."""

from __future__ import annotations

import random
from typing import Any

import msgspec
from msgspec import Raw

from bucketq.journal.document import Head, InlineEncoder, decode
from bucketq.queue import commands as c
from bucketq.queue.answers import AwaitArchive, JobInfo, Partial, StatsInfo
from bucketq.queue.invariants import violations
from bucketq.queue.machine import Machine
from bucketq.queue.state import State


class Desk:
    def __init__(self, seed: int = 1) -> None:
        self.machine = Machine(State.new("t"))
        self.now_us = 1_800_000_000_000_000
        self.mono_us = 1_000_000_000
        self.random = random.Random(seed).random
        self.encoder = InlineEncoder()

    @property
    def state(self) -> State:
        return self.machine.state

    def after(self, seconds: float) -> Desk:
        """Let time pass, second by second, so that leases are looked at in time."""
        left_us = int(seconds * 1_000_000)
        while left_us > 0:
            step_us = min(left_us, 1_000_000 if self.state.leases.next_us() < self.mono_us + left_us else left_us)
            left_us -= step_us
            self.now_us += step_us
            self.mono_us += step_us
            self.upkeep()
        return self

    def begin(self) -> None:
        self.machine.begin(self.now_us, self.mono_us, self.random)

    def ask(self, command: c.Command) -> Any:
        """Decide a command in a batch of its own; on an error nothing changes."""
        self.begin()
        try:
            answer = self.machine.decide(command)
        finally:
            self.machine.settle()
            self.check()
        if isinstance(answer, Partial):
            return self.ask(answer.rest)
        if isinstance(answer, AwaitArchive):
            self.archive()
            return self.ask(command)
        return answer

    def upkeep(self) -> None:
        self.begin()
        self.machine.decide_due()
        self.machine.settle()
        self.check()

    def check(self) -> None:
        """All invariants hold, and what would be stored is what is in memory."""
        assert violations(self.state) == []
        stored = decode(self.encoder.encode(self.state, Head("inline", "w", "n"))).snapshot()
        loaded = State.load(stored, self.mono_us, self.now_us)
        assert loaded.rows().jobs == self.state.rows().jobs
        assert loaded.root() == self.state.root()
        assert violations(loaded) == []

    def archive(self) -> None:
        self.ask(c.Seal("2027-01-15T08"))
        if self.state.segment is not None:
            self.ask(c.Drop(self.state.segment.k))

    def push(self, payload: object = None, queue: str = "q", **options: Any) -> JobInfo:
        item = c.PushItem(Raw(msgspec.json.encode(payload)), **options)
        [job] = self.ask(c.Push(queue, (item,)))
        return job  # type: ignore[no-any-return]

    def claim(self, n: int = 1, queue: str = "q", **options: Any) -> list[JobInfo]:
        return self.ask(c.Claim((queue,), n, **options))  # type: ignore[no-any-return]

    def claim_one(self, **options: Any) -> JobInfo:
        [job] = self.claim(1, **options)
        return job

    def payloads(self, n: int = 1, **options: Any) -> list[Any]:
        return [msgspec.json.decode(job.job.payload) for job in self.claim(n, **options) if job.job is not None]

    def complete(self, job: JobInfo, result: object = None) -> None:
        self.ask(c.Complete(handle(job), None if result is None else Raw(msgspec.json.encode(result))))

    def fail(self, job: JobInfo, **options: Any) -> JobInfo:
        return self.ask(c.Fail(handle(job), "boom", **options))  # type: ignore[no-any-return]

    def release(self, job: JobInfo, **options: Any) -> None:
        self.ask(c.Release(handle(job), **options))

    def get(self, job: JobInfo) -> JobInfo:
        return self.ask(c.Get(job.queue, job.id))  # type: ignore[no-any-return]

    def stats(self, queue: str = "q", group: str | None = None) -> StatsInfo:
        return self.ask(c.Stats(queue, group))  # type: ignore[no-any-return]

    def configure(self, queue: str = "q", **changes: object) -> None:
        self.ask(c.Configure(queue, changes))


def handle(job: JobInfo) -> c.Handle:
    assert job.run is not None
    return c.Handle(job.queue, job.id, job.run.token, job.group)
