"""What of an answer must be equal: everything a caller can see, and nothing of how it is kept."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import astuple, fields, replace

from bucketq.errors import BucketqError
from bucketq.queue.answers import GroupInfo, JobInfo, Partial, StatsInfo
from bucketq.queue.commands import Purge
from bucketq.queue.rows import ENDED, Attempt, Job, Run


def view(answer: Any) -> Any:
    """An answer in a form in which equal means equal."""
    match answer:
        case list():
            return [view(part) for part in answer]
        case JobInfo():
            return _job_view(answer)
        case GroupInfo():
            return (answer.queue, answer.name, answer.created_us, view(answer.stats))
        case StatsInfo():
            return astuple(replace(answer, oldest_ready_age=0.0))
        case Partial():
            assert isinstance(answer.rest, Purge)
            return replace(answer.rest, after=0)
        case BucketqError():
            return type(answer)
    return answer


def _job_view(info: JobInfo) -> Any:
    if info.job is None:
        return (info.id, info.queue, info.duplicate, info.gone)
    run = run_view(info.job, info.run, info.now_us)
    assert info.status == run["status"]
    seen = (info.id, info.queue, info.job, info.duplicate, info.status)
    if info.groups is None:
        return (*seen, info.group, run)
    groups = {group: run_view(info.job, run, info.now_us) for group, run in info.groups.items() if not is_trace(run)}
    if not groups:  # the groups that had ended it are gone
        return seen
    assert run == groups.get(info.group), f"{info} shows a run of a group that does not see the job"
    return (*seen, groups)


def is_trace(run: Run | None) -> bool:
    """Whether it only says that the group does not see the job."""
    return run is not None and run.status in ENDED and run.endings == 0


def run_view(job: Job, run: Run | None, now_us: int) -> dict[str, Any]:
    """A run as it can be seen at this moment; None is a run that nobody has touched."""
    if run is None:
        run = Run(run_us=job.run_us)
    shown: dict[str, Any] = {
        "status": run.status,
        "attempt": run.attempt,
        "token": run.token,
        "place": run.place or job.n,
        "endings": run.endings,
        "history": [replace(past, error=_error(past)) for past in run.history],
    }
    if run.status == "waiting":
        shown["status"] = "scheduled" if run.run_us > now_us else "ready"
        shown["run_us"] = max(run.run_us, now_us)
    elif run.status == "running":
        for name in ("lease_ms", "claimed_us", "beat_us", "worker", "progress"):
            shown[name] = getattr(run, name)
    elif run.status in ENDED:
        for name in ("finished_us", "result", "archived"):
            shown[name] = getattr(run, name)
        shown["error"] = _error(run.history[-1]) if run.history else run.error
    return shown


def _error(past: Attempt) -> str | None:
    """What a worker said; how the loss of a lease is put into words is free."""
    return None if past.outcome == "lost" else past.error


def tell(value: object) -> str:
    """A command as one would write it: without what is left at its default."""
    match value:
        case Struct():
            said = [
                f"{field.name}={tell(getattr(value, field.name))}"
                for field in fields(value)
                if field.required or getattr(value, field.name) != field.default
            ]
            return f"{type(value).__name__}({', '.join(said)})"
        case Raw():
            return f"Raw({bytes(value)!r})"
        case tuple():
            return f"({''.join(tell(part) + ', ' for part in value)})"
    return str(value) if isinstance(value, str) and value.startswith("#") else repr(value)
