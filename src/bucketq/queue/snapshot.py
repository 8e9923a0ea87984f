"""The whole state as rows: what is stored, and what two states are compared by."""

from __future__ import annotations

from msgspec import Struct

from bucketq.queue.rows import DedupRow, GroupRow, Job, QueueRow, Run, ScheduleRow, Segment, WriterRow


class JobRecord(Struct, frozen=True, gc=False, omit_defaults=True):
    """A job with its runs, as it is stored. `runs` names the groups in which it was touched."""

    job: Job
    runs: dict[str, Run] = {}


class Root(Struct, frozen=True, omit_defaults=True):
    """All that is not a per-job row."""

    tag: str
    seq: int = 0
    time_us: int = 0
    epoch: int = 0
    next_n: int = 1
    next_ending: int = 1
    token_floor: int = 0
    """No run that begins anew may take a token up to this: some that were forgotten had them."""
    sealed_last: int = 0
    next_k: int = 1
    first_k: int = 1
    segment: Segment | None = None
    floor: int = 0
    writers: dict[str, WriterRow] = {}
    queues: list[QueueRow] = []
    groups: list[GroupRow] = []
    schedules: list[ScheduleRow] = []


class Snapshot(Struct, frozen=True):
    """The whole state as rows."""

    root: Root
    jobs: list[JobRecord]
    dedups: list[DedupRow]
