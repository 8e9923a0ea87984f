"""The state: rows in tables, and indices that follow from them. No clock, no I/O.

Every change goes through a `put_…` method, which notes how to take it back; `rollback` does so at the cost of what was
changed. The state's own time (`now_us`) never goes back, not even then: it decides which waiting jobs are ready.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from sys import maxsize
from typing import Any, NamedTuple

from bucketq.queue.heaps import LazyHeap
from bucketq.queue.leases import Leases
from bucketq.queue.line import ABSENT, Lane, Line, MaybeRun, keep_turns
from bucketq.queue.queue_index import QueueIndex
from bucketq.queue.rows import (
    ENDED,
    NAMELESS,
    DedupRow,
    GroupRow,
    Job,
    QueueRow,
    Run,
    ScheduleRow,
    Segment,
    WriterRow,
)
from bucketq.queue.snapshot import JobRecord, Root, Snapshot

WRITERS_MAX = 1_024
ENDING_BYTES = 400
"""What a record takes besides payload and result, about."""


class Savepoint(NamedTuple):
    undo: int
    next_n: int
    next_ending: int


class State:
    """Tables, indices, and the list of what to take back."""

    def __init__(self, root: Root, mono_us: int = 0) -> None:
        self.tag = root.tag
        self.seq = root.seq
        self.time_us = root.time_us
        self.epoch = root.epoch
        self.next_n = root.next_n
        self.next_ending = root.next_ending
        self.token_floor = root.token_floor
        self.sealed_last = root.sealed_last
        self.next_k = root.next_k
        self.first_k = root.first_k
        self.segment = root.segment
        self.floor = root.floor
        self.writers: dict[str, WriterRow] = dict(root.writers)
        self.schedules: dict[str, ScheduleRow] = {}
        self.queues: dict[str, QueueIndex] = {}
        self.jobs: dict[int, Job] = {}
        self.dedups: dict[tuple[str, str], DedupRow] = {}

        self.now_us = root.time_us
        self.lines: dict[int, Line] = {}
        self.leases = Leases(self.lines, mono_us)
        self._serial = 0
        self.open: dict[str, OrderedDict[str, Line]] = {}
        self.stirred: set[str] = set()
        self.touched: set[int] = set()
        self.endings: dict[int, tuple[int, Line]] = {}
        self.unsealed_bytes = 0
        self.alarms: LazyHeap[tuple[int, int, int]] = LazyHeap()
        self.ttls: LazyHeap[tuple[int, int, int]] = LazyHeap()
        self.ticks: LazyHeap[tuple[int, str]] = LazyHeap()
        self.keeps: LazyHeap[tuple[int, int, int]] = LazyHeap()
        self._keep_until: dict[int, int] = {}
        self._put_off: set[str] = set()
        self._refills: list[tuple[int, int]] = []
        self._dedup_ends: list[tuple[int, str, str]] = []
        self.undo: list[tuple[Any, ...]] = []
        for queue in root.queues:
            self._add_queue(queue)
        for group in root.groups:
            self._add_group(group)
        for schedule in root.schedules:
            self._set_schedule(schedule.name, None, schedule)

    # -- whole states

    @classmethod
    def new(cls, tag: str) -> State:
        return cls(Root(tag=tag))

    @classmethod
    def load(cls, snapshot: Snapshot, mono_us: int = 0, now_us: int = 0) -> State:
        """Build the state from rows. Leases are armed in full, or by wall clock for what is long past."""
        state = cls(snapshot.root, mono_us)
        state.now_us = max(state.now_us, now_us)
        for record in sorted(snapshot.jobs, key=lambda record: record.job.n):
            state._load_job(record)
        for dedup in snapshot.dedups:
            state._set_dedup(dedup.queue, dedup.dedup, None, dedup)
        return state

    def _load_job(self, record: JobRecord) -> None:
        job = record.job
        queue = self.queues[job.queue]
        self.jobs[job.n] = job
        queue.roster.append(job.n)
        for group, run in record.runs.items():
            queue.lines[group].runs[job.n] = run
        for line in queue.seen_by(job.n):
            line.swap(job, ABSENT, line.runs.get(job.n))
        self._review_keep(job)

    def root(self) -> Root:
        groups = [line.group for queue in self.queues.values() for line in queue.lines.values()]
        return Root(
            tag=self.tag,
            seq=self.seq,
            time_us=self.time_us,
            epoch=self.epoch,
            next_n=self.next_n,
            next_ending=self.next_ending,
            token_floor=self.token_floor,
            sealed_last=self.sealed_last,
            next_k=self.next_k,
            first_k=self.first_k,
            segment=self.segment,
            floor=self.floor,
            writers=self.writers,
            queues=[queue.row for queue in self.queues.values()],
            groups=groups,
            schedules=list(self.schedules.values()),
        )

    def record(self, n: int) -> JobRecord:
        """A job with its runs."""
        job = self.jobs[n]
        lines = self.queues[job.queue].lines.values()
        return JobRecord(job, {line.name: line.runs[n] for line in lines if n in line.runs})

    def live_dedups(self) -> Iterator[DedupRow]:
        return (row for row in self.dedups.values() if row.until_us > self.time_us)

    def rows(self) -> Snapshot:
        jobs = [self.record(n) for n in sorted(self.jobs)]
        return Snapshot(self.root(), jobs, sorted(self.live_dedups(), key=lambda row: (row.n, row.dedup)))

    # -- time

    def advance(self, now_us: int, mono_us: int) -> None:
        """Let time pass: scheduled jobs become ready, throttled lines open, dedup keys past their window go."""
        self.leases.mono_us = max(self.leases.mono_us, mono_us)
        if now_us <= self.now_us:
            return
        self.now_us = now_us
        alarms = self.alarms
        while (top := alarms.top) is not None and top[0] <= now_us:
            alarms.remove(top)
            line = self.lines[top[1]]
            line.promote(self.jobs[top[2]], line.runs.get(top[2]))
        while self._refills and self._refills[0][0] <= now_us:
            refilled = self.lines.get(heappop(self._refills)[1])
            if refilled is not None:
                self.unthrottle(refilled)
        while self._dedup_ends and self._dedup_ends[0][0] <= now_us:
            until_us, queue, dedup = heappop(self._dedup_ends)
            row = self.dedups.get((queue, dedup))
            if row is not None and row.until_us == until_us:
                del self.dedups[queue, dedup]

    def throttle(self, line: Line, until_us: int) -> None:
        """The rate's bucket is empty: no claims from this line until then."""
        line.throttled = True
        heappush(self._refills, (until_us, line.serial))
        self.line_turned(line)

    def unthrottle(self, line: Line) -> None:
        if line.throttled:
            line.throttled = False
            self.line_turned(line)

    def next_wake_us(self) -> int:
        """When time alone makes something claimable."""
        alarm = self.alarms.top
        refill = self._refills[0][0] if self._refills else maxsize
        return min(alarm[0] if alarm else maxsize, refill)

    def next_due_us(self) -> int:
        """When time alone makes a write due: a tick, a ttl, the end of a keep."""
        tops = (self.ttls.top, self.keeps.top, self.ticks.top)
        return min((top[0] for top in tops if top is not None), default=maxsize)

    # -- undo

    def savepoint(self) -> Savepoint:
        return Savepoint(len(self.undo), self.next_n, self.next_ending)

    def rollback(self, to: Savepoint) -> None:
        """Take back everything since the savepoint."""
        undo = self.undo
        steps = undo[to.undo :]
        del undo[to.undo :]
        for step in reversed(steps):
            step[0](*step[1:])
        self.next_n = to.next_n
        self.next_ending = to.next_ending

    def settle(self) -> None:
        """What was done stays."""
        self.undo.clear()

    def take_touched(self) -> set[int]:
        """The jobs whose rows changed since the last call."""
        touched, self.touched = self.touched, set()
        return touched

    # -- jobs

    def put_job(self, job: Job) -> None:
        self._add_job(job)
        self.undo.append((self._unadd_job, job))

    def _add_job(self, job: Job) -> None:
        n = job.n
        queue = self.queues[job.queue]
        self.jobs[n] = job
        queue.roster.append(n)
        for line in queue.taking:
            line.swap(job, ABSENT, None)
        self.touched.add(n)

    def _unadd_job(self, job: Job) -> None:
        queue = self.queues[job.queue]
        for line in queue.taking:
            line.swap(job, None, ABSENT)
        queue.roster.pop()
        del self.jobs[job.n]
        self.touched.add(job.n)

    def remove_job(self, job: Job) -> None:
        runs = {line.name: line.runs.get(job.n) for line in self.queues[job.queue].seen_by(job.n)}
        self._drop_job(job, runs)
        self.undo.append((self._undrop_job, job, runs))

    def _drop_job(self, job: Job, runs: dict[str, Run | None]) -> None:
        n = job.n
        queue = self.queues[job.queue]
        self._set_keep(n, None)
        for group, run in runs.items():
            line = queue.lines[group]
            line.swap(job, run, ABSENT)
            if run is not None:
                del line.runs[n]
        del self.jobs[n]
        self.touched.add(n)
        queue.gone += 1
        if queue.gone > 64 and queue.gone * 2 > len(queue.roster):
            queue.roster = [number for number in queue.roster if number in self.jobs]
            queue.gone = 0

    def _undrop_job(self, job: Job, runs: dict[str, Run | None]) -> None:
        n = job.n
        queue = self.queues[job.queue]
        self.jobs[n] = job
        at = bisect_left(queue.roster, n)
        if at < len(queue.roster) and queue.roster[at] == n:
            queue.gone -= 1
        else:
            insort(queue.roster, n)
        for group, run in runs.items():
            line = queue.lines[group]
            if run is not None:
                line.runs[n] = run
            line.swap(job, ABSENT, run)
        self.touched.add(n)
        self._review_keep(job)

    def roster_after(self, queue: QueueIndex, n: int) -> Iterator[Job]:
        """The queue's jobs by admission, those numbered above `n`."""
        roster = queue.roster
        for at in range(bisect_right(roster, n), len(roster)):
            job = self.jobs.get(roster[at])
            if job is not None:
                yield job

    # -- runs

    def put_run(self, line: Line, job: Job, old: MaybeRun, new: MaybeRun) -> None:
        deadline_us = line.leases.get(job.n)
        self._swap_run(line, job, old, new, None)
        self.undo.append((self._swap_run, line, job, new, old, deadline_us))

    def _swap_run(self, line: Line, job: Job, old: MaybeRun, new: MaybeRun, deadline_us: int | None) -> None:
        """`deadline_us`: until when a lease was watched whose end is taken back."""
        n = job.n
        if isinstance(new, Run):
            line.runs[n] = new
        elif isinstance(old, Run):
            del line.runs[n]
        line.swap(job, old, new)
        self.touched.add(n)
        if deadline_us is not None and n in line.leases:
            self.leases.arm_until(line, n, deadline_us)
        if new is ABSENT or old is ABSENT or (new is not None and new.archived) or (old is not None and old.archived):  # type: ignore[union-attr]
            self._review_keep(job)

    def start_run(self, line: Line, lane: Lane, job: Job, old: Run | None, new: Run) -> None:
        """`put_run` for the head of a lane that is claimed."""
        n = job.n
        line.runs[n] = new
        line.start(lane, job, new)
        self.touched.add(n)
        self.undo.append((self._swap_run, line, job, new, old, None))

    def finish_run(self, line: Line, job: Job, old: Run, new: Run) -> None:
        """`put_run` for a running job that ends."""
        n = job.n
        line.runs[n] = new
        deadline_us = line.leases[n]
        line.finish(job, new)
        self.touched.add(n)
        self.undo.append((self._swap_run, line, job, new, old, deadline_us))

    def ending_entered(self, line: Line, job: Job, run: Run) -> None:
        self.endings[run.ended] = (job.n, line)
        if run.ended > self.sealed_last:
            self.unsealed_bytes += _record_bytes(job, run)

    def ending_left(self, job: Job, run: Run) -> None:
        del self.endings[run.ended]
        if run.ended > self.sealed_last:
            self.unsealed_bytes -= _record_bytes(job, run)

    def record_bytes(self, n: int, run: Run) -> int:
        """About how much an ending takes in the archive, before compression."""
        return _record_bytes(self.jobs[n], run)

    def keep_until_us(self, job: Job) -> int | None:
        """When the job may leave; None while a group has not ended it, or an ending is not archived, or for ever."""
        queue = self.queues[job.queue]
        until = 0
        for line in queue.seen_by(job.n):
            run = line.runs.get(job.n)
            if run is None or run.status not in ENDED or not run.archived:
                return None
            keep_ms = _keep_ms(queue.row, run)
            if keep_ms is None:
                return None
            until = max(until, run.finished_us + keep_ms * 1_000)
        return until

    def _review_keep(self, job: Job) -> None:
        self._set_keep(job.n, self.keep_until_us(job))

    def _set_keep(self, n: int, until_us: int | None) -> None:
        had = self._keep_until.get(n)
        if had == until_us:
            return
        if had is not None:
            del self._keep_until[n]
            self.keeps.remove((had, 0, n))
        if until_us is not None:
            self._keep_until[n] = until_us
            self.keeps.push((until_us, 0, n))

    def line_turned(self, line: Line) -> None:
        """A line opened or closed for claims."""
        ring = self.open.get(line.name)
        line.listed = line.is_open()
        if line.listed:
            if ring is None:
                ring = self.open[line.name] = OrderedDict()
            ring[line.queue] = line
            self.stirred.add(line.queue)
        elif ring is not None:
            ring.pop(line.queue, None)

    # -- queues and groups

    def put_queue(self, row: QueueRow) -> None:
        old = self.queues.get(row.name)
        if old is None:
            self._add_queue(row)
            self.undo.append((self._unadd_queue, row.name))
        else:
            self.undo.append((self._set_queue, old.row))
            self._set_queue(row)

    def _add_queue(self, row: QueueRow) -> None:
        self.queues[row.name] = QueueIndex(row)
        self._add_group(GroupRow(queue=row.name, name=NAMELESS))

    def _unadd_queue(self, name: str) -> None:
        for line in self.queues.pop(name).lines.values():
            self._close_line(line)

    def _set_queue(self, row: QueueRow) -> None:
        queue = self.queues[row.name]
        old = queue.row

        def change() -> None:
            queue.row = row
            self._review_lines(queue)

        if (old.ordered, old.max_running_per_key) != (row.ordered, row.max_running_per_key):
            self._reindex(queue, change)
        else:
            change()
        if _keeps(old) != _keeps(row):
            for job in self.roster_after(queue, 0):
                self._review_keep(job)

    def put_group(self, row: GroupRow) -> None:
        queue = self.queues[row.queue]
        line = queue.lines.get(row.name)
        if line is None:
            self._reindex(queue, lambda: self._add_group(row))
            self.undo.append((self._remove_line, queue, row.name))
        else:
            self.undo.append((self._set_group, line, line.group))
            self._set_group(line, row)

    def remove_group(self, queue_name: str, name: str) -> None:
        queue = self.queues[queue_name]
        line = queue.lines[name]
        self._remove_line(queue, name)
        self.undo.append((self._reindex, queue, lambda: self._join_line(queue, line)))

    def _remove_line(self, queue: QueueIndex, name: str) -> None:
        def change() -> None:
            self._close_line(queue.lines.pop(name))
            self._review_lines(queue)

        self._reindex(queue, change)

    def _set_group(self, line: Line, row: GroupRow) -> None:
        line.group = row
        line.throttled = False
        self._review_lines(self.queues[line.queue])

    def _add_group(self, row: GroupRow) -> None:
        queue = self.queues[row.queue]
        if row.name in queue.lines:
            queue.lines[row.name].group = row
            return
        self._serial += 1
        self._join_line(queue, Line(self, self._serial, row))

    def _join_line(self, queue: QueueIndex, line: Line) -> None:
        self.lines[line.serial] = line
        self.touched.update(line.runs)
        queue.lines[line.name] = line
        self._review_lines(queue)

    def _review_lines(self, queue: QueueIndex) -> None:
        queue.tune()
        for line in queue.lines.values():
            self.line_turned(line)

    def _close_line(self, line: Line) -> None:
        del self.lines[line.serial]
        self.touched.update(line.runs)
        ring = self.open.get(line.name)
        if ring is not None:
            ring.pop(line.queue, None)

    def _reindex(self, queue: QueueIndex, change: Callable[[], None]) -> None:
        """Take the queue's jobs out of the indices, change what the indices depend on, and put them back: O(jobs)."""
        jobs = list(self.roster_after(queue, 0))
        watched = {line: dict(line.leases) for line in queue.lines.values()}
        turns = {line: {at: list(ring) for at, ring in line.rings.items()} for line in queue.lines.values()}
        for job in jobs:
            for line in queue.seen_by(job.n):
                line.swap(job, line.runs.get(job.n), ABSENT)
        change()
        for job in jobs:
            for line in queue.seen_by(job.n):
                line.swap(job, ABSENT, line.runs.get(job.n))
            self._review_keep(job)
        for line in queue.lines.values():
            for at, ring in line.rings.items():
                keep_turns(ring, turns.get(line, {}).get(at, ()))
            for n, deadline_us in watched.get(line, {}).items():
                if n in line.leases:
                    self.leases.arm_until(line, n, deadline_us)

    # -- the rest

    def put_dedup(self, row: DedupRow) -> None:
        old = self.dedups.get((row.queue, row.dedup))
        self._set_dedup(row.queue, row.dedup, old, row)
        self.undo.append((self._set_dedup, row.queue, row.dedup, row, old))

    def _set_dedup(self, queue: str, dedup: str, old: DedupRow | None, new: DedupRow | None) -> None:
        if new is None:
            self.dedups.pop((queue, dedup), None)
        else:
            self.dedups[queue, dedup] = new
            heappush(self._dedup_ends, (new.until_us, queue, dedup))

    def put_schedule(self, name: str, row: ScheduleRow | None) -> None:
        old = self.schedules.get(name)
        self._set_schedule(name, old, row)
        self.undo.append((self._set_schedule, name, row, old))

    def _set_schedule(self, name: str, old: ScheduleRow | None, new: ScheduleRow | None) -> None:
        if old is not None:
            del self.schedules[name]
            if name in self._put_off:
                self._put_off.discard(name)
            elif not old.paused:
                self.ticks.remove((old.next_us, name))
        if new is not None:
            self.schedules[name] = new
            if not new.paused:
                self.ticks.push((new.next_us, name))

    def put_off(self, row: ScheduleRow) -> None:
        """Leave a schedule to processes that can tell its next tick."""
        self.ticks.remove((row.next_us, row.name))
        self._put_off.add(row.name)

    def put_value(self, name: str, value: object) -> None:
        """Set one of the root's plain values (segment, next_k, …)."""
        self.undo.append((setattr, self, name, getattr(self, name)))
        setattr(self, name, value)

    def put_seal(self, segment: Segment) -> None:
        self._shift_sealed(segment.first, segment.last, 1)
        self.undo.append((self._shift_sealed, segment.first, segment.last, -1))

    def _shift_sealed(self, first: int, last: int, sign: int) -> None:
        """Move endings between the unsealed and the sealed ones."""
        self.sealed_last = last if sign > 0 else first - 1
        for number in range(first, last + 1):
            n, line = self.endings[number]
            run = line.runs[n]
            line.unsealed[run.status] = line.unsealed.get(run.status, 0) - sign
            self.unsealed_bytes -= sign * _record_bytes(self.jobs[n], run)

    def put_stamp(self, seq: int, time_us: int, epoch: int, writer: str, nonce: str) -> None:
        """Note a commit: its number and time, and its writer's row."""
        self.undo.append((self._unstamp, self.seq, self.time_us, self.epoch, self.floor, dict(self.writers)))
        self.seq, self.time_us, self.epoch = seq, time_us, epoch
        self.writers.pop(writer, None)
        self.writers[writer] = WriterRow(nonce, seq)
        while len(self.writers) > WRITERS_MAX:
            oldest = next(iter(self.writers))
            self.floor = max(self.floor, self.writers.pop(oldest).seq)

    def _unstamp(self, seq: int, time_us: int, epoch: int, floor: int, writers: dict[str, WriterRow]) -> None:
        self.seq, self.time_us, self.epoch, self.floor, self.writers = seq, time_us, epoch, floor, writers


def _keeps(row: QueueRow) -> tuple[int | None, int, int]:
    return row.retention_ms, row.result_ttl_ms, row.keep_finished_ms


def _keep_ms(queue: QueueRow, run: Run) -> int | None:
    if run.status == "dead":
        return queue.retention_ms
    return queue.result_ttl_ms if run.result else queue.keep_finished_ms


def _record_bytes(job: Job, run: Run) -> int:
    return len(job.payload) + len(run.result) + ENDING_BYTES
