"""What the commands have in common: how a run begins, comes back and ends, and how a job leaves."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw
from msgspec.structs import replace

from bucketq import errors
from bucketq.queue import events as e
from bucketq.queue.answers import JobInfo
from bucketq.queue.rows import (
    ENDED,
    HISTORY_MAX,
    NAMELESS,
    NOTHING,
    Attempt,
    AttemptOutcome,
    Job,
    QueueRow,
    Run,
    RunStatus,
    job_number,
)
from tests.queue.model.tables import STATUS_ORDER, Ending, Tables

Seen = Sequence[e.Event]
"""What the machine wrote for the command that is being decided."""


class Runs(Tables):
    def _number(self) -> int:
        self.next_number += 1
        return self.next_number - 1

    def _make_queue(self, queue: str) -> None:
        self.queues.setdefault(queue, QueueRow(queue))

    def _store(self, job: Job) -> None:
        self.jobs[job.n] = job
        for group in self.named_groups(job.queue) or [NAMELESS]:
            self.runs[job.n, group] = self.fresh(job.n)

    def _give_back(
        self, n: int, group: str, outcome: AttemptOutcome, attempt: int, wait_us: int = 0, error: str | None = None
    ) -> None:
        if self.is_past_ttl(n):
            self._end(n, group, "expired", outcome, error)
            return
        run = self.runs[n, group]
        self.armed.pop((n, group))
        if group == NAMELESS and self.others_have(n):
            del self.runs[n, group]
            return
        self.runs[n, group] = replace(
            run,
            status="waiting",
            attempt=attempt,
            run_us=self.now_us + wait_us if wait_us else 0,
            error=error,
            history=self._history(run, outcome, error),
        )

    def _end(
        self,
        n: int,
        group: str,
        status: RunStatus,
        outcome: AttemptOutcome | None = None,
        error: str | None = None,
        result: Raw = NOTHING,
    ) -> None:
        run = self.runs[n, group]
        self.armed.pop((n, group), None)
        self.runs[n, group] = replace(
            run,
            status=status,
            endings=run.endings + 1,
            ended=self.next_ending,
            finished_us=self.now_us,
            result=result,
            error=error,
            archived=False,
            history=self._history(run, outcome, error) if outcome else run.history,
        )
        self.endings[self.next_ending] = Ending(n, group)
        self.next_ending += 1
        self.totals[self.jobs[n].queue, group, status] += 1

    def _history(self, run: Run, outcome: AttemptOutcome, error: str | None) -> tuple[Attempt, ...]:
        attempt = Attempt(run.worker, run.claimed_us, self.now_us, outcome, error)
        return (*run.history, attempt)[-HISTORY_MAX:]

    def _is_spent(self, n: int, run: Run) -> bool:
        job = self.jobs[n]
        return run.attempt >= (job.max_attempts or self.settings(job.queue).max_attempts)

    def _cancel_runs(self, n: int) -> None:
        for group, run in self.runs_of(n).items():
            if run.status not in ENDED:
                self._end(n, group, "cancelled", "cancelled" if run.status == "running" else None)

    def _may_leave(self, n: int) -> bool:
        leaves_us = self.leaves_us(n)
        return leaves_us is not None and leaves_us <= self.now_us

    def _remove(self, n: int) -> None:
        gone = self.job_status(n)
        job = self.jobs.pop(n)
        for group in [*self.named_groups(job.queue), NAMELESS]:
            self.runs.pop((n, group), None)
        if job.dedup is not None and self.dedups[job.queue, job.dedup].n == n:
            self.dedups[job.queue, job.dedup] = self.dedups[job.queue, job.dedup]._replace(gone=gone)

    def _find(self, queue: str, job_id: str) -> int:
        n = job_number(self.tag, job_id)
        if n is None or n not in self.jobs or self.jobs[n].queue != queue:
            raise errors.JobNotFound(job_id)
        return n

    def _info(self, n: int, group: str | None = None, groups: bool = False) -> JobInfo:
        """The job as it is for a group, or for the group whose status is the job's."""
        runs = self.runs_of(n)
        job = self.jobs[n]
        if group is None:
            group = min(runs, key=lambda of: STATUS_ORDER.index(self.status(runs[of])))
        shown: dict[str, Run | None] | None = None
        if groups and self.named_groups(job.queue):
            shown = dict(runs)
        return JobInfo(self.tag, job.queue, n, self.now_us, job, runs.get(group), group, groups=shown)

    def _check_group(self, queue: str, group: str) -> None:
        """Of a queue that is there one can only ask about a group that is there; the nameless one always is."""
        if group and queue in self.queues and (queue, group) not in self.groups:
            raise errors.SettingInvalid(f"queue {queue} has no group {group!r}")
