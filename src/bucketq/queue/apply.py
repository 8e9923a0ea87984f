"""Events become rows. The same code runs when a batch is decided and when a commit is replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from bucketq.queue import events as e
from bucketq.queue.line import ABSENT, Line
from bucketq.queue.rows import HISTORY_MAX, Attempt, AttemptOutcome, DedupRow, Job, Run
from bucketq.queue.state import State

FRESH = Run()


def apply(state: State, event: e.Event, now_us: int) -> None:
    """Apply one event of a commit made at `now_us`."""
    _APPLY[type(event)](state, event, now_us)


def pushed(state: State, event: e.Pushed) -> None:
    job = event.job
    state.put_job(job)
    state.next_n = job.n + 1
    if job.dedup is not None:
        state.put_dedup(DedupRow(job.queue, job.dedup, job.n, event.dedup_until_us))


def claimed(job: Job, old: Run | None, event: e.Claimed, now_us: int) -> Run:
    """The row of a job that is handed out."""
    if old is None:
        return Run("running", event.attempt, event.token, 0, job.run_us, event.lease_ms, now_us, now_us, event.worker)
    return Run(
        "running",
        event.attempt,
        event.token,
        old.place,
        old.run_us,
        event.lease_ms,
        now_us,
        now_us,
        event.worker,
        endings=old.endings,
        error=old.error,
        history=old.history,
    )


def ended(job: Job, old: Run | None, event: e.Ended, now_us: int) -> Run:
    """The row of a job whose run is over."""
    run = old or FRESH
    return Run(
        event.status,
        run.attempt,
        run.token,
        run.place,
        run.run_us or job.run_us,
        run.lease_ms,
        run.claimed_us,
        run.beat_us,
        run.worker,
        run.progress,
        run.endings + 1,
        event.number,
        now_us,
        event.result,
        event.error if event.error is not None or event.status == "done" else run.error,
        False,
        _history(run, event.outcome, event.error, now_us),
    )


def _returned(state: State, event: e.Returned, now_us: int) -> None:
    line, job = _where(state, event.n, event.group)
    run = line.runs[event.n]
    new = Run(
        status="waiting",
        attempt=event.attempt,
        token=run.token,
        place=run.place,
        run_us=event.run_us,
        endings=run.endings,
        error=event.error if event.error is not None else run.error,
        history=_history(run, event.outcome, event.error, now_us),
    )
    state.put_run(line, job, run, new)


def _history(run: Run, outcome: AttemptOutcome | None, error: str | None, now_us: int) -> tuple[Attempt, ...]:
    if outcome is None:
        return run.history
    attempt = Attempt(run.worker, run.claimed_us, now_us, outcome, error)
    if len(run.history) < HISTORY_MAX:
        return (*run.history, attempt)
    return (*run.history[1 - HISTORY_MAX :], attempt)


def _where(state: State, n: int, group: str) -> tuple[Line, Job]:
    job = state.jobs[n]
    return state.queues[job.queue].lines[group], job


def _pushed(state: State, event: e.Pushed, now_us: int) -> None:
    pushed(state, event)


def _claimed(state: State, event: e.Claimed, now_us: int) -> None:
    line, job = _where(state, event.n, event.group)
    old = line.runs.get(event.n)
    state.put_run(line, job, old, claimed(job, old, event, now_us))


def _ended(state: State, event: e.Ended, now_us: int) -> None:
    line, job = _where(state, event.n, event.group)
    old = line.runs.get(event.n)
    state.put_run(line, job, old, ended(job, old, event, now_us))
    state.next_ending = event.number + 1


def _beat(state: State, event: e.Beat, now_us: int) -> None:
    line, job = _where(state, event.n, event.group)
    run = line.runs[event.n]
    new = Run(
        run.status,
        run.attempt,
        run.token,
        run.place,
        run.run_us,
        run.lease_ms,
        run.claimed_us,
        now_us,
        run.worker,
        event.progress or run.progress,
        run.endings,
        error=run.error,
        history=run.history,
    )
    state.put_run(line, job, run, new)


def _retried(state: State, event: e.Retried, now_us: int) -> None:
    line, job = _where(state, event.n, event.group)
    run = line.runs[event.n]
    new = Run(
        token=run.token,
        place=event.place,
        run_us=now_us,
        endings=run.endings,
        error=run.error,
        history=run.history,
    )
    state.put_run(line, job, run, new)
    state.next_n = max(state.next_n, event.place + 1)


def _skipped(state: State, event: e.Skipped, now_us: int) -> None:
    line, job = _where(state, event.n, event.group)
    old = line.runs.get(event.n)
    seen = line in state.queues[job.queue].seen_by(event.n)
    state.put_run(line, job, old if seen else ABSENT, Run(status="cancelled", finished_us=now_us, archived=True))


def _forgotten(state: State, event: e.Forgotten, now_us: int) -> None:
    line, job = _where(state, event.n, event.group)
    state.put_run(line, job, line.runs[event.n], ABSENT)
    state.put_value("token_floor", max(state.token_floor, event.token_floor))


def _removed(state: State, event: e.Removed, now_us: int) -> None:
    job = state.jobs[event.n]
    state.remove_job(job)
    if job.dedup is None:
        return
    row = state.dedups.get((job.queue, job.dedup))
    if row is not None and row.n == job.n:
        state.put_dedup(DedupRow(row.queue, row.dedup, row.n, row.until_us, event.gone))


def _queue_set(state: State, event: e.QueueSet, now_us: int) -> None:
    state.put_queue(event.row)


def _group_set(state: State, event: e.GroupSet, now_us: int) -> None:
    state.put_group(event.row)


def _group_removed(state: State, event: e.GroupRemoved, now_us: int) -> None:
    state.remove_group(event.queue, event.group)
    state.put_value("token_floor", max(state.token_floor, event.token_floor))


def _rate_taken(state: State, event: e.RateTaken, now_us: int) -> None:
    group = state.queues[event.queue].lines[event.group].group
    state.put_group(replace(group, tokens_micro=event.tokens_micro, tokens_us=now_us))


def _schedule_set(state: State, event: e.ScheduleSet, now_us: int) -> None:
    state.put_schedule(event.row.name, event.row)


def _schedule_removed(state: State, event: e.ScheduleRemoved, now_us: int) -> None:
    state.put_schedule(event.name, None)


def _sealed(state: State, event: e.Sealed, now_us: int) -> None:
    state.put_value("segment", event.segment)
    state.put_value("next_k", event.segment.k + 1)
    state.put_seal(event.segment)
    for row in event.totals:
        state.put_group(row)


def _archived(state: State, event: e.Archived, now_us: int) -> None:
    segment = state.segment
    if segment is None or segment.k != event.k:
        raise AssertionError(f"segment {event.k} is not the sealed one")
    for number in range(segment.first, segment.last + 1):
        n, line = state.endings[number]
        run = line.runs[n]
        state.put_run(line, state.jobs[n], run, replace(run, archived=True))
    state.put_value("segment", None)


def _pruned(state: State, event: e.Pruned, now_us: int) -> None:
    state.put_value("first_k", event.first)


_APPLY: dict[type, Callable[[State, Any, int], None]] = {
    e.Pushed: _pushed,
    e.Claimed: _claimed,
    e.Beat: _beat,
    e.Returned: _returned,
    e.Ended: _ended,
    e.Retried: _retried,
    e.Skipped: _skipped,
    e.Forgotten: _forgotten,
    e.Removed: _removed,
    e.QueueSet: _queue_set,
    e.GroupSet: _group_set,
    e.GroupRemoved: _group_removed,
    e.RateTaken: _rate_taken,
    e.ScheduleSet: _schedule_set,
    e.ScheduleRemoved: _schedule_removed,
    e.Sealed: _sealed,
    e.Archived: _archived,
    e.Pruned: _pruned,
}
