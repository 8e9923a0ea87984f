"""Archive segments: the endings of jobs as JSON lines, compressed, never changed.

A record is one JSON object a line. Payload and result are JSON texts in strings, times are ISO-8601 in UTC with six
digits, a field has the same type in every record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import msgspec
import zstandard
from msgspec import Struct

from bucketq.errors import StateCorrupt
from bucketq.journal.layout import FORMAT
from bucketq.queue.rows import Attempt, Job, Run, Segment, job_id
from bucketq.queue.state import State

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SEGMENT_BYTES_MAX = 1 << 30
_encoder = msgspec.json.Encoder()


class AttemptRecord(Struct, frozen=True):
    worker: str | None
    claimed_at: str
    ended_at: str
    outcome: str
    error: str | None


class Record(Struct, frozen=True):
    """One ending of a job, as the archive keeps it."""

    format: int
    id: str
    queue: str
    group: str | None
    key: str | None
    priority: int
    ending: int
    status: str
    payload: str | None
    payload_base64: str | None
    result: str | None
    error: str | None
    attempts: list[AttemptRecord]
    pushed_at: str
    ready_at: str
    claimed_at: str | None
    finished_at: str
    worker: str | None
    headers: dict[str, str] | None


_decoder = msgspec.json.Decoder(Record)

Ending = tuple[Job, Run, str]
"""A job, its run that has ended, and the group."""


def endings_of(state: State, segment: Segment) -> list[Ending]:
    """The endings that a segment was sealed with. Rows are immutable: they may be used when the state has moved on."""
    found: list[Ending] = []
    for number in range(segment.first, segment.last + 1):
        n, line = state.endings[number]
        found.append((state.jobs[n], line.runs[n], line.name))
    return found


def encode_lines(tag: str, endings: Iterable[Ending]) -> bytes:
    """The segment's lines. The same endings always give the same bytes."""
    return b"".join(_encoder.encode(record(tag, *ending)) + b"\n" for ending in endings)


def record(tag: str, job: Job, run: Run, group: str) -> Record:
    payload = bytes(job.payload).decode()
    return Record(
        format=FORMAT,
        id=job_id(tag, job.n),
        queue=job.queue,
        group=group or None,
        key=job.key,
        priority=job.priority,
        ending=run.endings,
        status=run.status,
        payload=None if job.binary else payload,
        payload_base64=msgspec.json.decode(payload, type=str) if job.binary else None,
        result=bytes(run.result).decode() if run.result else None,
        error=run.error,
        attempts=[_attempt(attempt) for attempt in run.history],
        pushed_at=iso(job.pushed_us),
        ready_at=iso(max(job.pushed_us, run.run_us)),
        claimed_at=iso(run.claimed_us) if run.claimed_us else None,
        finished_at=iso(run.finished_us),
        worker=run.worker,
        headers=job.headers or None,
    )


def _attempt(attempt: Attempt) -> AttemptRecord:
    return AttemptRecord(attempt.worker, iso(attempt.claimed_us), iso(attempt.ended_us), attempt.outcome, attempt.error)


@lru_cache(maxsize=1_024)
def iso(time_us: int) -> str:
    """A commit's time is that of all its events: the same few moments come again and again."""
    return (_EPOCH + timedelta(microseconds=time_us)).isoformat(timespec="microseconds")[:26] + "Z"


def compress(lines: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=3, write_checksum=True, write_content_size=True).compress(lines)


def decompress(key: str, data: bytes) -> bytes:
    """The lines of a segment, or StateCorrupt."""
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= SEGMENT_BYTES_MAX:
            raise StateCorrupt(key, "is not a segment that bucketq wrote, or is damaged")
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
    except zstandard.ZstdError as error:
        raise StateCorrupt(key, f"is damaged: {error}") from error


def read_records(key: str, data: bytes) -> Iterator[Record]:
    """The records of a segment, or StateCorrupt naming it."""
    for line in decompress(key, data).splitlines():
        try:
            found = _decoder.decode(line)
        except (msgspec.MsgspecError, ValueError) as error:
            raise StateCorrupt(key, f"has a record that can't be read: {error}") from error
        if found.format > FORMAT:
            raise StateCorrupt(key, f"has format {found.format}, this version reads up to {FORMAT}; upgrade bucketq")
        yield found
