"""What callers ask. Values have been checked on the way in; times are durations or points in microseconds."""

from __future__ import annotations

from typing import Literal

from msgspec import Raw, Struct

from bucketq.queue.rows import NAMELESS, ScheduleRow

JobStatus = Literal["ready", "scheduled", "running", "done", "dead", "cancelled", "expired"]


class PushItem(Struct, frozen=True, gc=False):
    """One job to store. `delay_us` counts from the commit; `run_us` is a point in time; at most one is set."""

    payload: Raw
    binary: bool = False
    priority: int = 0
    delay_us: int = 0
    run_us: int = 0
    key: str | None = None
    dedup: str | None = None
    dedup_window_us: int | None = None
    max_attempts: int = 0
    headers: dict[str, str] | None = None
    ttl_us: int = 0


class Push(Struct, frozen=True, gc=False):
    """Store jobs, all or none. Answer: list[JobInfo], in order."""

    queue: str
    items: tuple[PushItem, ...]


class Claim(Struct, frozen=True, gc=False):
    """Hand out up to `n` jobs. `queues` None: any queue of that group. Answer: list[JobInfo], each running."""

    queues: tuple[str, ...] | None
    n: int = 1
    lease_ms: int | None = None
    worker: str | None = None
    group: str = NAMELESS
    key: str | None = None
    auto_complete: bool = False


class Handle(Struct, frozen=True, gc=False):
    """Which claim is meant: queue, job id, group and the claim's token."""

    queue: str
    job_id: str
    token: int
    group: str = NAMELESS


class Complete(Struct, frozen=True, gc=False):
    """Answer: None. LeaseLost if the token is not current."""

    claim: Handle
    result: Raw | None = None


class Fail(Struct, frozen=True, gc=False):
    """Counts an attempt. Answer: JobInfo as it is afterwards."""

    claim: Handle
    error: str
    retry_in_us: int | None = None
    dead: bool = False


class Release(Struct, frozen=True, gc=False):
    """Gives the job back, counts nothing. Answer: None."""

    claim: Handle
    delay_us: int = 0


class Heartbeat(Struct, frozen=True, gc=False):
    """Renews the lease. Answer: None."""

    claim: Handle
    progress: Raw | None = None


class Transact(Struct, frozen=True, gc=False):
    """All or nothing. Answer: list of the parts' answers."""

    parts: tuple[Push | Complete | Fail | Release, ...]


class CompleteMany(Struct, frozen=True, gc=False):
    """Each alone. Answer: list of None or the BucketqError of that one."""

    parts: tuple[Complete, ...]


class Get(Struct, frozen=True, gc=False):
    """Answer: JobInfo, or JobNotFound."""

    queue: str
    job_id: str


class ListJobs(Struct, frozen=True, gc=False):
    """Answer: list[JobInfo] by admission, those after the job `after`."""

    queue: str
    status: JobStatus | None = None
    limit: int = 100
    after: str | None = None
    group: str | None = None


class Stats(Struct, frozen=True, gc=False):
    """Answer: StatsInfo. `group` None: the sum over the queue's groups."""

    queue: str
    group: str | None = None


class ListQueues(Struct, frozen=True, gc=False):
    """Answer: list[str], sorted."""


class Settings(Struct, frozen=True, gc=False):
    """Answer: QueueRow (the defaults, for a queue that is not there yet)."""

    queue: str


class Cancel(Struct, frozen=True, gc=False):
    """Ends a waiting or running job in every group. Answer: JobInfo as it is afterwards (a job that has ended
    already is left as it is)."""

    queue: str
    job_id: str


class Retry(Struct, frozen=True, gc=False):
    """Brings a dead job back, at the end of the line. Answer: JobInfo (a job that waits or runs is left as it is)."""

    queue: str
    job_id: str


class Purge(Struct, frozen=True, gc=False):
    """Removes jobs: waiting ones end as cancelled, dead and finished ones leave; running ones stay.
    Answer: int. Runs in steps of at most 1,000; `after`, `purged` and `until` carry it from step to step."""

    queue: str
    status: JobStatus | None = None
    after: int = 0
    purged: int = 0
    until: int = 0


class Pause(Struct, frozen=True, gc=False):
    """Answer: None."""

    queue: str


class Resume(Struct, frozen=True, gc=False):
    """Answer: None."""

    queue: str


class Configure(Struct, frozen=True, gc=False):
    """`changes` are fields of QueueRow, checked. Answer: QueueRow."""

    queue: str
    changes: dict[str, object]


class Subscribe(Struct, frozen=True, gc=False):
    """`start_us`: None = jobs from now on; otherwise those still in the state that were pushed at or after it
    (0 = all). Answer: GroupInfo. Subscribing again changes nothing."""

    queue: str
    group: str
    start_us: int | None = None


class Unsubscribe(Struct, frozen=True, gc=False):
    """Answer: bool, whether there was such a group."""

    queue: str
    group: str


class ListGroups(Struct, frozen=True, gc=False):
    """Answer: list[GroupInfo]."""

    queue: str


class PutSchedule(Struct, frozen=True, gc=False):
    """Adds or replaces a schedule; next_us 0 = the first tick after now. Answer: ScheduleRow."""

    schedule: ScheduleRow


class RemoveSchedule(Struct, frozen=True, gc=False):
    """Answer: bool, whether there was one (of that queue, if one is given)."""

    name: str
    queue: str | None = None


class ListSchedules(Struct, frozen=True, gc=False):
    """Answer: list[ScheduleRow] by name. `queue` None: of all queues."""

    queue: str | None = None


class Seal(Struct, frozen=True, gc=False):
    """Seals the oldest endings into the next segment, unless one is under way. Answer: Segment or None."""

    folder: str
    endings_max: int = 10_000
    bytes_max: int = 8 << 20


class Drop(Struct, frozen=True, gc=False):
    """Segment `k` is in the archive: its endings may leave. Answer: None. Used by upkeep."""

    k: int


class Prune(Struct, frozen=True, gc=False):
    """Segments below `first` were deleted. Answer: None. Used by upkeep."""

    first: int


Command = (
    Push
    | Claim
    | Complete
    | Fail
    | Release
    | Heartbeat
    | Transact
    | CompleteMany
    | Get
    | ListJobs
    | Stats
    | ListQueues
    | Settings
    | Cancel
    | Retry
    | Purge
    | Pause
    | Resume
    | Configure
    | Subscribe
    | Unsubscribe
    | ListGroups
    | PutSchedule
    | RemoveSchedule
    | ListSchedules
    | Seal
    | Drop
    | Prune
)
