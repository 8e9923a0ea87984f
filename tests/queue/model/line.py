"""Who may be claimed next: order and limits, by looking at every job."""

from __future__ import annotations

from bucketq.queue.rows import ENDED, Job, Run
from tests.queue.model.tables import Tables

TOKEN_MICRO = 1_000_000


def choices(tables: Tables, queue: str, group: str, key: str | None = None) -> dict[str | None, int]:
    """The jobs of which the next claim may take any one: for each key in the rotation its first."""
    if is_closed(tables, queue, group):
        return {}
    ready = [(job, run) for job, run in claimable(tables, queue, group) if key is None or job.key == key]
    if not ready:
        return {}
    priority = min(job.priority for job, _ in ready)
    return firsts(ready, priority)


def firsts(ready: list[tuple[Job, Run]], priority: int) -> dict[str | None, int]:
    """Of each key the job with the lowest place at this priority."""
    found: dict[str | None, tuple[int, int]] = {}
    for job, run in ready:
        if job.priority == priority:
            mine = (run.place, job.n)
            found[job.key] = min(found.get(job.key, mine), mine)
    return {key: n for key, (_, n) in found.items()}


def is_closed(tables: Tables, queue: str, group: str) -> bool:
    """Whether the queue gives nothing at all to this group now."""
    settings = tables.settings(queue)
    if settings.paused:
        return True
    running = sum(run.status == "running" for _, run in tables.in_group(queue, group))
    if settings.max_running is not None and running >= settings.max_running:
        return True
    return settings.rate_per_hour is not None and bucket(tables, queue, group) < TOKEN_MICRO


def claimable(tables: Tables, queue: str, group: str) -> list[tuple[Job, Run]]:
    """The ready jobs that neither their key's limit nor their key's order holds back."""
    settings = tables.settings(queue)
    everyone = list(tables.in_group(queue, group))
    ready = [(job, run) for job, run in everyone if run.status == "waiting" and run.run_us <= tables.now_us]
    if settings.ordered:
        heads = {job.n for job, _ in _heads(everyone)}
        ready = [(job, run) for job, run in ready if job.n in heads]
    limit = settings.max_running_per_key
    if limit is not None:
        running = [job.key for job, run in everyone if run.status == "running"]
        ready = [(job, run) for job, run in ready if job.key is None or running.count(job.key) < limit]
    return ready


def _heads(everyone: list[tuple[Job, Run]]) -> list[tuple[Job, Run]]:
    unfinished = [(job, run) for job, run in everyone if run.status not in ENDED]
    return [
        (job, run)
        for job, run in unfinished
        if not any(other.key == job.key and ahead.place < run.place for other, ahead in unfinished)
    ]


def bucket(tables: Tables, queue: str, group: str) -> int:
    """The rate's micro-tokens as of now."""
    rate = tables.settings(queue).rate_per_hour
    assert rate is not None
    if (queue, group) not in tables.buckets:
        return full(rate)
    micro, since_us = tables.buckets[queue, group]
    return min(full(rate), micro + rate * (tables.now_us - since_us) // 3_600)


def full(rate_per_hour: int) -> int:
    return max(TOKEN_MICRO, rate_per_hour * TOKEN_MICRO // 3_600)
