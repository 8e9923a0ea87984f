"""A job as callers see it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from bucketq.client.checks import moment
from bucketq.client.codecs import Codec
from bucketq.client.payload import decode_json
from bucketq.errors import JobNotFound
from bucketq.queue.answers import JobInfo, status_of
from bucketq.queue.commands import JobStatus
from bucketq.queue.rows import Attempt as AttemptRow
from bucketq.queue.rows import AttemptOutcome, Run

T = TypeVar("T")

_UNSET: Any = object()
_NO_RUN = Run()


class Attempt(NamedTuple):
    """One claim of a job that has ended, and how. Times are UTC."""

    worker: str | None
    claimed_at: datetime | None
    ended_at: datetime | None
    outcome: AttemptOutcome
    error: str | None


class Job(Generic[T]):
    """A job as it stood when the call was answered; it does not follow what happens later. Times are UTC.

    A push whose dedup key was taken shows the first job (`duplicate`). If that has left the queue, only its id, queue
    and status are known: `payload` raises `JobNotFound`, and what else it had is empty.
    """

    __slots__ = ("_codec", "_info", "_payload")

    def __init__(self, info: JobInfo, codec: Codec[T]) -> None:
        self._info = info
        self._codec = codec
        self._payload: T = _UNSET

    @property
    def id(self) -> str:
        return self._info.id

    @property
    def queue(self) -> str:
        return self._info.queue

    @property
    def payload(self) -> T:
        """Raises `PayloadInvalid` if it is not of the queue's type."""
        if self._payload is _UNSET:
            job = self._info.job
            if job is None:
                raise JobNotFound(self.id, "it has left; only its dedup key is left")
            self._payload = self._codec.decode(job.payload, job.binary)
        return self._payload

    @property
    def status(self) -> JobStatus:
        """ready, scheduled, running, done, dead, cancelled or expired."""
        return self._info.status

    @property
    def key(self) -> str | None:
        return self._info.job.key if self._info.job else None

    @property
    def priority(self) -> int:
        return self._info.job.priority if self._info.job else 0

    @property
    def headers(self) -> dict[str, str]:
        return dict((self._info.job and self._info.job.headers) or {})

    @property
    def dedup(self) -> str | None:
        return self._info.job.dedup if self._info.job else None

    @property
    def duplicate(self) -> bool:
        """Whether the push stored nothing, because its dedup key was taken."""
        return self._info.duplicate

    @property
    def attempt(self) -> int:
        """How many attempts have been counted; of a claim, its own number."""
        return self._run.attempt

    @property
    def max_attempts(self) -> int | None:
        """The job's own; None: the queue's."""
        return (self._info.job.max_attempts or None) if self._info.job else None

    @property
    def token(self) -> int:
        """Of the last claim; 0 if there was none."""
        return self._run.token

    @property
    def worker(self) -> str | None:
        return self._run.worker

    @property
    def progress(self) -> Any:
        """What the worker last said by heartbeat."""
        return decode_json(self._run.progress) if self._run.progress else None

    @property
    def result(self) -> Any:
        return decode_json(self._run.result) if self._run.result else None

    @property
    def error(self) -> str | None:
        """Of the last failure."""
        return self._run.error

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The last 20 that have ended, oldest first."""
        return tuple(map(_attempt, self._run.history))

    @property
    def group(self) -> str | None:
        """The group for which this is how the job stands; None on a queue without groups."""
        return self._info.group or None

    @property
    def groups(self) -> dict[str, JobStatus]:
        """On a queue with groups, where the job stands for each (from `get` and `jobs`)."""
        info, job = self._info, self._info.job
        if job is None or not info.groups:
            return {}
        return {group: status_of(job, run, info.now_us) for group, run in info.groups.items()}

    @property
    def pushed_at(self) -> datetime | None:
        return moment(self._info.job.pushed_us) if self._info.job else None

    @property
    def run_at(self) -> datetime | None:
        """Before which it does not run; None: at once."""
        if self._info.run is not None:
            return moment(self._info.run.run_us)
        return moment(self._info.job.run_us) if self._info.job else None

    @property
    def claimed_at(self) -> datetime | None:
        return moment(self._run.claimed_us)

    @property
    def finished_at(self) -> datetime | None:
        return moment(self._run.finished_us)

    @property
    def expires_at(self) -> datetime | None:
        return moment(self._info.job.expires_us) if self._info.job else None

    def __repr__(self) -> str:
        return f"<Job {self.id} of {self.queue}: {self.status}>"

    @property
    def _run(self) -> Run:
        return self._info.run or _NO_RUN


def _attempt(row: AttemptRow) -> Attempt:
    return Attempt(row.worker, moment(row.claimed_us), moment(row.ended_us), row.outcome, row.error)
