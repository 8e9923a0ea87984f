"""What falls due by itself: ticks, ttls, the end of keeps, leases; and the archive's steps."""

from __future__ import annotations

from msgspec.structs import replace

from bucketq.queue import commands as c
from bucketq.queue import events as e
from bucketq.queue.batch import Batch
from bucketq.queue.decide_claims import give_back
from bucketq.queue.decide_jobs import admit
from bucketq.queue.decide_queues import leave
from bucketq.queue.policy import SKIP_GRACE_US, tick_after_us
from bucketq.queue.rows import GroupRow, ScheduleRow, Segment

BEAT_US = 3_000_000
"""Who has not looked at the leases, or not reached the store, for longer than this has not seen that they are over."""


def decide_due(batch: Batch, limit: int) -> None:
    """Decide up to about `limit` of what the time makes due, leases aside."""
    _ticks(batch, limit)
    _expired(batch, limit)
    _kept_long_enough(batch, limit)


def _ticks(batch: Batch, limit: int) -> None:
    state = batch.state
    for _ in range(limit):
        top = state.ticks.top
        if top is None or top[0] > batch.now_us:
            return
        row = state.schedules[top[1]]
        try:
            next_us = _next_tick_us(row, batch.now_us)
        except (LookupError, OSError, ValueError):  # as where this machine lacks the time zone: others may know it
            state.put_off(row)
        else:
            _tick(batch, row, next_us)


def _next_tick_us(row: ScheduleRow, now_us: int) -> int:
    return tick_after_us(row, row.next_us if row.catch_up == "all" else now_us)


def _tick(batch: Batch, row: ScheduleRow, next_us: int) -> None:
    makes = row.catch_up != "skip" or _has_fresh_tick(row, batch.now_us)
    batch.emit(e.ScheduleSet(replace(row, next_us=next_us)))
    if makes:
        item = c.PushItem(
            row.payload,
            row.binary,
            row.priority,
            key=row.key,
            max_attempts=row.max_attempts,
            headers=row.headers,
            ttl_us=row.ttl_ms * 1_000,
        )
        admit(batch, batch.ensure_queue(row.queue), item)


def _has_fresh_tick(row: ScheduleRow, now_us: int) -> bool:
    tick_us = max(row.next_us, tick_after_us(row, now_us - SKIP_GRACE_US))
    return now_us - SKIP_GRACE_US < tick_us <= now_us


def _expired(batch: Batch, limit: int) -> None:
    state = batch.state
    for _ in range(limit):
        top = state.ttls.top
        if top is None or top[0] > batch.now_us:
            return
        batch.emit(e.Ended(top[2], state.next_ending, "expired", state.lines[top[1]].name))


def _kept_long_enough(batch: Batch, limit: int) -> None:
    state = batch.state
    for _ in range(limit):
        top = state.keeps.top
        if top is None or top[0] > batch.now_us:
            return
        leave(batch, state.jobs[top[2]])


def decide_leases(batch: Batch, limit: int) -> None:
    """End the leases that are over. Comes last in a batch: whoever renewed one was first."""
    state = batch.state
    if not state.leases.look(BEAT_US):
        state.leases.rearm()
        return
    for _, serial, n in state.leases.over(limit):
        line, job = state.lines[serial], state.jobs[n]
        run = line.runs[n]
        error = f"the lease of {run.lease_ms / 1_000:g} s ran out"
        give_back(batch, line, job, run, "lost", error, None)


def seal(batch: Batch, command: c.Seal) -> Segment | None:
    """Fix the next segment: its number, its folder, its endings."""
    state = batch.state
    first = state.sealed_last + 1
    if state.segment is not None or first >= state.next_ending:
        return None
    totals: dict[int, GroupRow] = {}
    size = 0
    last = first - 1
    while last + 1 < state.next_ending and last - first + 1 < command.endings_max:
        n, line = state.endings[last + 1]
        run = line.runs[n]
        size += state.record_bytes(n, run)
        if size > command.bytes_max and last >= first:
            break
        row = totals.get(line.serial, line.group)
        totals[line.serial] = replace(row, **{run.status: getattr(row, run.status) + 1})
        last += 1
    segment = Segment(state.next_k, command.folder, first, last)
    batch.emit(e.Sealed(segment, list(totals.values())))
    return segment


def drop(batch: Batch, command: c.Drop) -> None:
    """The segment is written: mark its endings, and let go of what nothing keeps."""
    state = batch.state
    segment = state.segment
    if segment is None or segment.k != command.k:
        return
    batch.emit(e.Archived(command.k))
    _kept_long_enough(batch, segment.last - segment.first + 1)


def prune(batch: Batch, command: c.Prune) -> None:
    if command.first > batch.state.first_k:
        batch.emit(e.Pruned(command.first))
