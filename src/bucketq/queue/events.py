"""What happened, as it is written down. An event carries what changes of the rows it touches, as it is afterwards;
the time of all events of a commit is the commit's. The payload is written once, with the push."""

from __future__ import annotations

from typing import Literal

from msgspec import Raw, Struct

from bucketq.queue.rows import NAMELESS, NOTHING, AttemptOutcome, GroupRow, Job, QueueRow, ScheduleRow, Segment


class _Event(Struct, frozen=True, gc=False, omit_defaults=True, tag_field="is"):
    pass


class Pushed(_Event, frozen=True, gc=False, omit_defaults=True, tag="pushed"):
    job: Job
    dedup_until_us: int = 0


class Claimed(_Event, frozen=True, gc=False, omit_defaults=True, tag="claimed"):
    n: int
    token: int
    attempt: int
    lease_ms: int
    group: str = NAMELESS
    worker: str | None = None


class Beat(_Event, frozen=True, gc=False, omit_defaults=True, tag="beat"):
    """The lease was renewed."""

    n: int
    group: str = NAMELESS
    progress: Raw = NOTHING


class Returned(_Event, frozen=True, gc=False, omit_defaults=True, tag="returned"):
    """A claim ended and the job waits again."""

    n: int
    outcome: AttemptOutcome
    attempt: int
    run_us: int = 0
    group: str = NAMELESS
    error: str | None = None


class Ended(_Event, frozen=True, gc=False, omit_defaults=True, tag="ended"):
    """A job's run ended for a group; `number` counts the endings of the bucket."""

    n: int
    number: int
    status: Literal["done", "dead", "cancelled", "expired"]
    group: str = NAMELESS
    outcome: AttemptOutcome | None = None
    """How the claim ended, if it was running."""
    error: str | None = None
    result: Raw = NOTHING


class Retried(_Event, frozen=True, gc=False, omit_defaults=True, tag="retried"):
    n: int
    place: int
    group: str = NAMELESS


class Skipped(_Event, frozen=True, gc=False, omit_defaults=True, tag="skipped"):
    """The group will not see this job: it had ended before the group came."""

    n: int
    group: str = NAMELESS


class Forgotten(_Event, frozen=True, gc=False, omit_defaults=True, tag="forgotten"):
    """The group's run of this job is no more: other groups have it now. Its tokens are never given out again."""

    n: int
    group: str = NAMELESS
    token_floor: int = 0


class Removed(_Event, frozen=True, gc=False, omit_defaults=True, tag="removed"):
    """The job left the state; all its endings are archived. A dedup row of its own remembers how."""

    n: int
    gone: str


class QueueSet(_Event, frozen=True, gc=False, omit_defaults=True, tag="queue_set"):
    row: QueueRow


class GroupSet(_Event, frozen=True, gc=False, omit_defaults=True, tag="group_set"):
    row: GroupRow


class GroupRemoved(_Event, frozen=True, gc=False, omit_defaults=True, tag="group_removed"):
    queue: str
    group: str
    token_floor: int = 0


class RateTaken(_Event, frozen=True, gc=False, omit_defaults=True, tag="rate_taken"):
    """The rate's bucket after a claim."""

    queue: str
    tokens_micro: int
    group: str = NAMELESS


class ScheduleSet(_Event, frozen=True, gc=False, omit_defaults=True, tag="schedule_set"):
    row: ScheduleRow


class ScheduleRemoved(_Event, frozen=True, gc=False, omit_defaults=True, tag="schedule_removed"):
    name: str


class Sealed(_Event, frozen=True, gc=False, omit_defaults=True, tag="sealed"):
    segment: Segment
    totals: list[GroupRow]
    """The groups whose endings are in it, with their totals as they are afterwards."""


class Archived(_Event, frozen=True, gc=False, omit_defaults=True, tag="archived"):
    """Segment `k` is in the archive. Its endings are marked; who may leave is said by Removed."""

    k: int


class Pruned(_Event, frozen=True, gc=False, omit_defaults=True, tag="pruned"):
    first: int


Event = (
    Pushed
    | Claimed
    | Beat
    | Returned
    | Ended
    | Retried
    | Skipped
    | Forgotten
    | Removed
    | QueueSet
    | GroupSet
    | GroupRemoved
    | RateTaken
    | ScheduleSet
    | ScheduleRemoved
    | Sealed
    | Archived
    | Pruned
)
