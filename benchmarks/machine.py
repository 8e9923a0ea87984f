"""The state machine alone: decide and apply in batches of 1,000 single commands, no store, no event loop.

Each case lives in a process of its own and they take turns, one operation at a time, so that all see the same noise and
none sees another's garbage. The commands are made before the clock starts; what a batch does beside deciding
(`begin`, `settle`, `take_touched`) is inside. The garbage collector is on, nothing is frozen.

Rates are by wall clock. Ratios are of CPU time, in which a neighbour on the same core does not show.
"""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from random import Random
from typing import Any, Literal

from msgspec import Raw, Struct

from benchmarks.figures import Bench, Effort, Figure, median, payload_text
from bucketq.queue import commands as c
from bucketq.queue.answers import JobInfo
from bucketq.queue.machine import Machine
from bucketq.queue.state import State

BATCH = 1_000
QUEUE = "mail"
TAG = "bench"
HOUR_MS = 3_600_000
RATE_TARGET = 200_000
RATIO_TARGET_PERCENT = 70

Operation = Literal["push", "claim", "complete"]
OPERATIONS: tuple[Operation, ...] = ("push", "claim", "complete")


class Case(Struct, frozen=True):
    """A state to work on. `waiting` jobs are there before; `keys` are those of the jobs pushed, 0 for none; `blocked`
    keys have one job running and one waiting, of a better priority, on a queue with max_running_per_key=1."""

    title: str
    waiting: int = 0
    keys: int = 0
    blocked: int = 0

    @property
    def fresh(self) -> bool:
        """Whether each round begins with an empty state."""
        return not self.waiting and not self.blocked

    def smaller(self) -> Case:
        return Case(f"{self.title} / 10", self.waiting // 10, self.keys // 10, self.blocked // 10)


EMPTY = Case("depth 0")
OTHERS = (
    Case("1,000,000 waiting", waiting=1_000_000),
    Case("100,000 keys", waiting=100_000, keys=100_000),
    Case("100,000 blocked keys", waiting=50_000, keys=50_000, blocked=100_000),
    Case("a new key a job", keys=100_000),
)
JOBS = 10_000
"""Commands of each operation in a round; no more than the blocked case has free keys."""
ROUNDS = 15


class Timing(Struct, frozen=True):
    wall_s: float
    cpu_s: float


class Rig:
    """A machine driven as the committer drives it, in time of its own."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._rng = Random(1)
        self._numbers = 0
        self.machine = self._loaded()

    def _loaded(self) -> Machine:
        self.machine = Machine(State.new(TAG))
        self._now_us, self._mono_us = 10**15, 10**9
        case = self.case
        if case.blocked:
            self.batch([c.Configure(QUEUE, {"max_running_per_key": 1})])
            for first in range(0, case.blocked, BATCH // 2):
                names = [f"blocked-{n}" for n in range(first, first + BATCH // 2) for _ in range(2)]
                self.batch([c.Push(QUEUE, tuple(self._item(key, -1) for key in names))])
                self.batch([c.Claim((QUEUE,), BATCH // 2, HOUR_MS)])
        for first in range(0, case.waiting, BATCH):
            self.batch([c.Push(QUEUE, tuple(self._item(self._key(n)) for n in range(first, first + BATCH)))])
        return self.machine

    def _key(self, n: int) -> str | None:
        return f"key-{n % self.case.keys}" if self.case.keys else None

    def _item(self, key: str | None, priority: int = 0) -> c.PushItem:
        self._numbers += 1
        return c.PushItem(Raw(payload_text(self._numbers)), priority=priority, key=key)

    def batch(self, commands: list[c.Command]) -> list[Any]:
        """One turn of the committer without its write."""
        machine = self.machine
        self._now_us += 1_000
        self._mono_us += 1_000
        machine.begin(self._now_us, self._mono_us, self._rng.random)
        decide = machine.decide
        answers = [decide(command) for command in commands]
        machine.state.stirred.clear()
        machine.state.take_touched()
        machine.settle()
        return answers

    def round(self, jobs: int) -> Iterator[Timing]:
        """Push, claim and complete that many jobs, one operation at each step."""
        if self.case.fresh:
            self.machine = self._loaded()
        yield self._timed([c.Push(QUEUE, (self._item(self._key(n)),)) for n in range(jobs)])
        held: list[c.Command] = []
        yield self._timed([c.Claim((QUEUE,), 1, None, "worker") for _ in range(jobs)], held)
        assert len(held) == jobs, f"{self.case.title}: claimed {len(held)} of {jobs}"
        yield self._timed(held)

    def _timed(self, commands: list[c.Command], held: list[c.Command] | None = None) -> Timing:
        """Run the commands. What was claimed is made ready for completion off the clock, batch by batch: callers
        do not keep their answers either."""
        wall_s = cpu_s = 0.0
        for first in range(0, len(commands), BATCH):
            some = commands[first : first + BATCH]
            wall, cpu = time.perf_counter(), time.process_time()
            answers = self.batch(some)
            cpu_s += time.process_time() - cpu
            wall_s += time.perf_counter() - wall
            if held is not None:
                held.extend(_complete(info) for found in answers for info in found)
        return Timing(wall_s, cpu_s)


def _complete(info: JobInfo) -> c.Complete:
    assert info.run is not None
    return c.Complete(c.Handle(info.queue, info.id, info.run.token, info.group))


def _work(case: Case, jobs: int, pipe: Connection) -> None:
    """A case's process: an operation for each message, until None."""
    rig = Rig(case)
    gc.collect()
    pipe.send(None)
    steps: Iterator[Timing] = iter(())
    while pipe.recv() is not None:
        timing = next(steps, None)
        if timing is None:
            steps = rig.round(jobs)
            timing = next(steps)
        pipe.send(timing)


def _measure(cases: tuple[Case, ...], jobs: int, rounds: int) -> dict[tuple[str, Operation], list[Timing]]:
    context = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    workers = []
    for case in cases:
        pipes[case.title], far = context.Pipe()
        worker = context.Process(target=_work, args=(case, jobs, far), daemon=True)
        worker.start()
        far.close()
        workers.append(worker)
    for pipe in pipes.values():
        pipe.recv()
    timings: dict[tuple[str, Operation], list[Timing]] = {}
    for _ in range(rounds):
        for operation in OPERATIONS:
            for title, pipe in pipes.items():
                pipe.send(operation)
                timings.setdefault((title, operation), []).append(pipe.recv())
    for pipe in pipes.values():
        pipe.send(None)
    for worker in workers:
        worker.join()
    return timings


def run(effort: Effort) -> list[Figure]:
    others = tuple(case.smaller() for case in OTHERS) if effort.quick else OTHERS
    jobs = effort.pick(JOBS, JOBS // 10)
    timings = _measure((EMPTY, *others), jobs, effort.pick(ROUNDS, 3))
    rates = [_rate(operation, timings[EMPTY.title, operation], jobs) for operation in OPERATIONS]
    ratios = [
        _ratio(case, operation, timings[case.title, operation], timings[EMPTY.title, operation], jobs)
        for case in others
        for operation in OPERATIONS
    ]
    return rates + ratios


def _rate(operation: Operation, timings: list[Timing], jobs: int) -> Figure:
    details = _details(timings, jobs)
    return Figure(
        f"{operation}, {EMPTY.title}",
        details["best"],
        "/s",
        RATE_TARGET,
        note=f"best of {len(timings)}; by CPU time {details['best_by_cpu']:,.0f}/s",
        details=details,
        by_cpu=details["best_by_cpu"],
    )


def _ratio(case: Case, operation: Operation, timings: list[Timing], empty: list[Timing], jobs: int) -> Figure:
    percent = 100 * min(timing.cpu_s for timing in empty) / min(timing.cpu_s for timing in timings)
    details = _details(timings, jobs)
    pairs = [100 * other.cpu_s / timing.cpu_s for timing, other in zip(timings, empty, strict=True)]
    details["median_of_paired_percents"] = median(pairs)
    note = f"of the rate at depth 0; by CPU time {details['best_by_cpu']:,.0f}/s"
    return Figure(f"{operation}, {case.title}", percent, "%", RATIO_TARGET_PERCENT, note=note, details=details)


def _details(timings: list[Timing], jobs: int) -> dict[str, float]:
    return {
        "best": jobs / min(timing.wall_s for timing in timings),
        "median": jobs / median([timing.wall_s for timing in timings]),
        "best_by_cpu": jobs / min(timing.cpu_s for timing in timings),
        "median_by_cpu": jobs / median([timing.cpu_s for timing in timings]),
        "rounds": len(timings),
    }


def hot(effort: Effort) -> dict[str, Callable[[], object]]:
    jobs = effort.pick(JOBS, JOBS // 10)
    rig, keyed = Rig(EMPTY), Rig(Case("keys", waiting=jobs, keys=jobs))
    steps, keyed_steps = rig.round(jobs), keyed.round(jobs)
    paths: dict[str, Callable[[], object]] = {}
    for operation in OPERATIONS:
        paths[f"{operation}, {EMPTY.title}"] = lambda: next(steps)
        paths[f"{operation}, {jobs:,} keys"] = lambda: next(keyed_steps)
    return paths


BENCH = Bench("machine", "none", run, hot)
