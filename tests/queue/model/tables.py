"""What the reference knows: flat dicts of immutable rows, so that a copy is a copy of the dicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from bucketq.queue.rows import ENDED, NAMELESS, NOTHING, Job, QueueRow, Run, ScheduleRow, Segment

STATUS_ORDER = ("running", "ready", "scheduled", "dead", "done", "cancelled", "expired")


class Dedup(NamedTuple):
    n: int
    until_us: int
    gone: str | None = None


class Ending(NamedTuple):
    n: int
    group: str
    where: str = "open"
    """open, sealed or archived"""


class Tables:
    """The whole state. Nothing here is an index: every question is answered by looking at everything."""

    def __init__(self, tag: str = "t") -> None:
        self.tag = tag
        self.now_us = 0
        self.mono_us = 0
        self.next_number = 1
        self.next_ending = 1
        self.queues: dict[str, QueueRow] = {}
        self.groups: dict[tuple[str, str], int] = {}
        """The named groups: when each was created."""
        self.leaving: dict[tuple[str, str], bool] = {}
        """Groups that were unsubscribed and wait for what they have ended to be archived."""
        self.buckets: dict[tuple[str, str], tuple[int, int]] = {}
        """The rate's micro-tokens and their time; a bucket that is not here is full."""
        self.jobs: dict[int, Job] = {}
        self.runs: dict[tuple[int, str], Run] = {}
        self.armed: dict[tuple[int, str], int] = {}
        self.tokens: dict[tuple[int, str], int] = {}
        """The highest token ever given for a job and group, whatever became of the run."""
        self.dedups: dict[tuple[str, str], Dedup] = {}
        self.schedules: dict[str, ScheduleRow] = {}
        self.endings: dict[int, Ending] = {}
        self.totals: Counter[tuple[str, str, str]] = Counter()
        self.segment: Segment | None = None
        self.segments = 0

    def copy(self) -> dict[str, object]:
        """Everything as it is now, for `restore`."""
        return {
            name: value.copy() if isinstance(value, (dict, Counter)) else value for name, value in vars(self).items()
        }

    def restore(self, copy: dict[str, object]) -> None:
        vars(self).update(copy)

    def settings(self, queue: str) -> QueueRow:
        return self.queues.get(queue) or QueueRow(queue)

    def named_groups(self, queue: str) -> list[str]:
        return [group for of, group in self.groups if of == queue]

    def jobs_of(self, queue: str) -> list[int]:
        return [n for n, job in self.jobs.items() if job.queue == queue]

    def runs_of(self, n: int) -> dict[str, Run]:
        return {group: run for (of, group), run in self.runs.items() if of == n}

    def in_group(self, queue: str, group: str) -> Iterator[tuple[Job, Run]]:
        for (n, of), run in self.runs.items():
            if of == group and self.jobs[n].queue == queue:
                yield self.jobs[n], run

    def fresh(self, n: int) -> Run:
        return Run(place=n, run_us=self.jobs[n].run_us)

    def is_past_ttl(self, n: int) -> bool:
        return 0 < self.jobs[n].expires_us <= self.now_us

    def status(self, run: Run) -> str:
        if run.status != "waiting":
            return run.status
        return "scheduled" if run.run_us > self.now_us else "ready"

    def job_status(self, n: int) -> str:
        """The one status of a job that stands differently in its groups."""
        return min((self.status(run) for run in self.runs_of(n).values()), key=STATUS_ORDER.index)

    def unarchived(self, n: int) -> bool:
        return any(run.status in ENDED and not run.archived for run in self.runs_of(n).values())

    def leaves_us(self, n: int) -> int | None:
        """When the job may leave, if nothing changes; None: not as things are."""
        runs = self.runs_of(n).values()
        if any(run.status not in ENDED or not run.archived for run in runs):
            return None
        settings = self.settings(self.jobs[n].queue)
        keeps_ms: list[int] = []
        for run in runs:
            if run.status == "dead":
                if settings.retention_ms is None:
                    return None
                keeps_ms.append(settings.retention_ms)
            elif run.result != NOTHING:
                keeps_ms.append(settings.result_ttl_ms)
            else:
                keeps_ms.append(settings.keep_finished_ms)
        return max(run.finished_us for run in runs) + max(keeps_ms) * 1_000

    def others_have(self, n: int) -> bool:
        """Whether a named group sees the job."""
        return any(group != NAMELESS for group in self.runs_of(n))
