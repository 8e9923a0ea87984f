"""The rows of the state. Immutable: a change replaces the row, so undoing it is putting the old one back.

Times are microseconds since 1970 (`_us`); 0 means "not set". A job's number `n` is its admission number, which
is never given out twice; `place` is its number in line, which is `n` unless it was retried after its death.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Raw, Struct

NAMELESS = ""
"""The group of a queue that nobody has subscribed to."""

HISTORY_MAX = 20

NOTHING = Raw(b"")
"""No JSON text at all, as against `null`. (msgspec can't read `Raw | None`.)"""

RunStatus = Literal["waiting", "running", "done", "dead", "cancelled", "expired"]
ENDED: frozenset[str] = frozenset({"done", "dead", "cancelled", "expired"})

AttemptOutcome = Literal["done", "failed", "released", "lost", "cancelled", "expired"]


class Job(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a push fixed for good. `payload` is JSON text; of a binary job it is a base64 string."""

    n: int
    queue: str
    payload: Raw
    pushed_us: int
    binary: bool = False
    priority: int = 0
    key: str | None = None
    run_us: int = 0
    expires_us: int = 0
    max_attempts: int = 0
    dedup: str | None = None
    headers: dict[str, str] | None = None


class Attempt(Struct, frozen=True, gc=False, omit_defaults=True):
    """One claim of a job that has ended, whatever its outcome."""

    worker: str | None
    claimed_us: int
    ended_us: int
    outcome: AttemptOutcome
    error: str | None = None


class Run(Struct, frozen=True, gc=False, omit_defaults=True):
    """Where a job stands for one group. A job that nobody has touched has no row: it waits, as pushed."""

    status: RunStatus = "waiting"
    attempt: int = 0
    token: int = 0
    place: int = 0
    run_us: int = 0
    lease_ms: int = 0
    claimed_us: int = 0
    beat_us: int = 0
    worker: str | None = None
    progress: Raw = NOTHING
    endings: int = 0
    ended: int = 0
    finished_us: int = 0
    result: Raw = NOTHING
    error: str | None = None
    archived: bool = False
    history: tuple[Attempt, ...] = ()


class Backoff(Struct, frozen=True, gc=False, omit_defaults=True):
    """Exponential back-off with full jitter: a random share of `initial × factor^(failures-1)`, capped at `max`."""

    initial_ms: int = 1_000
    factor: float = 2.0
    max_ms: int = 3_600_000


class QueueRow(Struct, frozen=True, omit_defaults=True):
    """A queue and its settings; None means no limit."""

    name: str
    paused: bool = False
    lease_ms: int = 30_000
    max_attempts: int = 5
    backoff: Backoff = Backoff()
    max_running: int | None = None
    max_running_per_key: int | None = None
    max_waiting: int | None = None
    rate_per_hour: int | None = None
    ordered: bool = False
    dedup_window_ms: int = 3_600_000
    retention_ms: int | None = 14 * 86_400_000
    result_ttl_ms: int = 3_600_000
    keep_finished_ms: int = 0


class GroupRow(Struct, frozen=True, omit_defaults=True):
    """A consumer group of a queue: it sees the jobs numbered `since` and above. One that is `leaving` gives no claims
    and takes nothing back: it is gone once what it has ended is archived. `tokens_micro` is the rate's bucket as
    of `tokens_us`. The totals count the endings that were sealed."""

    queue: str
    name: str
    since: int = 0
    created_us: int = 0
    leaving: bool = False
    tokens_micro: int = 0
    tokens_us: int = 0
    done: int = 0
    dead: int = 0
    cancelled: int = 0
    expired: int = 0


class DedupRow(Struct, frozen=True, gc=False, omit_defaults=True):
    """A dedup key in its window. It outlives its job; `gone` then says how the job left."""

    queue: str
    dedup: str
    n: int
    until_us: int
    gone: str | None = None


class ScheduleRow(Struct, frozen=True, omit_defaults=True):
    """Makes one job per tick. `next_us` is the tick that comes next; exactly one of cron and every_ms is set."""

    name: str
    queue: str
    payload: Raw
    next_us: int
    cron: str | None = None
    every_ms: int = 0
    timezone: str = "UTC"
    catch_up: Literal["skip", "one", "all"] = "one"
    paused: bool = False
    binary: bool = False
    priority: int = 0
    key: str | None = None
    max_attempts: int = 0
    ttl_ms: int = 0
    headers: dict[str, str] | None = None


class Segment(Struct, frozen=True, omit_defaults=True):
    """A sealed archive segment: number, folder, and the endings numbered `first` to `last`."""

    k: int
    folder: str
    first: int
    last: int


class WriterRow(Struct, frozen=True, array_like=True, gc=False):
    """A writer's last commit: its nonce and seq."""

    nonce: str
    seq: int


def job_id(tag: str, n: int) -> str:
    """A job's public id: the bucket's tag and the job's number."""
    return f"{tag}-{n}"


def job_number(tag: str, job_id: str) -> int | None:
    """The number in a public id, or None if the id is not one of this bucket's."""
    head, _, tail = job_id.rpartition("-")
    if head != tag or not tail.isdecimal() or not tail.isascii() or (tail[0] == "0" and tail != "0") or len(tail) > 18:
        return None
    return int(tail)
