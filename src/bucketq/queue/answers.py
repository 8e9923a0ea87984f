"""What commands are answered with. Rows inside are immutable and may be kept by whoever asked."""

from __future__ import annotations

from msgspec import Struct

from bucketq.queue.commands import Command, JobStatus
from bucketq.queue.rows import NAMELESS, Job, Run, job_id


class JobInfo(Struct, frozen=True, gc=False):
    """A job as it stood at `now_us` for one group. `job` is None when only its dedup key is left; `gone` then says
    how it left. `groups`: on a queue with groups, where it stands for each (Get and ListJobs only)."""

    tag: str
    queue: str
    n: int
    now_us: int
    job: Job | None
    run: Run | None = None
    group: str = NAMELESS
    duplicate: bool = False
    gone: str | None = None
    groups: dict[str, Run | None] | None = None

    @property
    def id(self) -> str:
        return job_id(self.tag, self.n)

    @property
    def status(self) -> JobStatus:
        if self.job is None:
            return self.gone or "done"  # type: ignore[return-value]
        return status_of(self.job, self.run, self.now_us)


def status_of(job: Job, run: Run | None, now_us: int) -> JobStatus:
    """The public status: a waiting job is ready, or scheduled while its time has not come."""
    if run is None:
        return "scheduled" if job.run_us > now_us else "ready"
    if run.status == "waiting":
        return "scheduled" if run.run_us > now_us else "ready"
    return run.status


class StatsInfo(Struct, frozen=True):
    """Counts of a queue. `ready` to `dead` are as of now; `done`, `cancelled`, `expired`, `died` count endings ever."""

    queue: str
    ready: int = 0
    scheduled: int = 0
    running: int = 0
    dead: int = 0
    done: int = 0
    cancelled: int = 0
    expired: int = 0
    died: int = 0
    oldest_ready_age: float = 0.0
    paused: bool = False


class GroupInfo(Struct, frozen=True):
    """A consumer group and its counts."""

    queue: str
    name: str
    since: int
    created_us: int
    stats: StatsInfo


class Partial(Struct, frozen=True):
    """Not an answer yet: the command goes on as `rest` in the next batch."""

    rest: Command


class AwaitArchive(Struct, frozen=True):
    """Not an answer yet: an ending of this job has to be archived first; sealing is due at once."""
