"""An open batch: the state, the moment, and the events decided so far."""

from __future__ import annotations

from collections.abc import Callable

from bucketq.errors import JobNotFound, LeaseLost, QueueFull
from bucketq.queue import commands as c
from bucketq.queue import events as e
from bucketq.queue.answers import JobInfo, status_of
from bucketq.queue.apply import apply
from bucketq.queue.line import Line
from bucketq.queue.queue_index import QueueIndex
from bucketq.queue.rows import Job, QueueRow, Run, job_number
from bucketq.queue.state import State

QUEUES_MAX = 10_000


class Batch:
    """What decisions work on. `emit` applies an event at once, so that the next command sees it."""

    __slots__ = ("events", "now_us", "random", "state")

    def __init__(self, state: State, now_us: int, random: Callable[[], float]) -> None:
        self.state = state
        self.now_us = now_us
        self.random = random
        self.events: list[e.Event] = []

    def emit(self, event: e.Event) -> None:
        self.events.append(event)
        apply(self.state, event, self.now_us)

    def ensure_queue(self, name: str) -> QueueIndex:
        """The queue, made now if it is new."""
        queue = self.state.queues.get(name)
        if queue is None:
            if len(self.state.queues) >= QUEUES_MAX:
                raise QueueFull(f"there are {QUEUES_MAX:,} queues already; use keys to tell jobs apart")
            self.emit(e.QueueSet(QueueRow(name)))
            queue = self.state.queues[name]
        return queue

    def find(self, queue: str, id_: str) -> Job:
        """The job of that id in that queue, or JobNotFound."""
        n = job_number(self.state.tag, id_)
        job = self.state.jobs.get(n) if n is not None else None
        if job is None or job.queue != queue:
            raise JobNotFound(id_, f"no such job in queue {queue!r}: it never was, or it has finished and left")
        return job

    def held(self, claim: c.Handle) -> tuple[Line, Job, Run]:
        """The run that a claim holds, or LeaseLost."""
        n = job_number(self.state.tag, claim.job_id)
        job = self.state.jobs.get(n) if n is not None else None
        if job is not None and job.queue == claim.queue:
            line = self.state.queues[job.queue].lines.get(claim.group)
            run = line.runs.get(job.n) if line is not None else None
            held = run is not None and run.status == "running" and run.token == claim.token
            if line is not None and run is not None and held and not line.group.leaving:
                return line, job, run
        raise LeaseLost(
            f"job {claim.job_id}: claim {claim.token} is no longer current; the lease ran out or the job was ended"
        )

    def info(self, line: Line, job: Job, run: Run | None) -> JobInfo:
        return JobInfo(self.state.tag, job.queue, job.n, self.now_us, job, run, line.name)

    def summary(self, job: Job) -> JobInfo:
        """The job for whoever asks without a group: the group that is least far along speaks for all."""
        queue = self.state.queues[job.queue]
        lines = queue.seen_by(job.n)
        if len(lines) > 1:
            lines = [line for line in lines if not _is_skipped(line.runs.get(job.n))] or lines
        line = min(lines, key=lambda line: _RANK[status_of(job, line.runs.get(job.n), self.now_us)])
        groups = {seen.name: seen.runs.get(job.n) for seen in lines} if queue.groups else None
        run = line.runs.get(job.n)
        return JobInfo(self.state.tag, job.queue, job.n, self.now_us, job, run, line.name, groups=groups)


def _is_skipped(run: Run | None) -> bool:
    """Whether the job had ended before the group came."""
    return run is not None and run.archived and not run.endings


_RANK = {
    status: rank
    for rank, status in enumerate(("running", "ready", "scheduled", "dead", "done", "cancelled", "expired"))
}
