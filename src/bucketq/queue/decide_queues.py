"""What changes a queue as a whole: settings, groups, schedules; and cancel, retry, purge."""

from __future__ import annotations

from bisect import bisect_left
from itertools import islice

from msgspec.structs import replace

from bucketq.errors import JobNotFound, QueueFull
from bucketq.queue import commands as c
from bucketq.queue import events as e
from bucketq.queue.answers import AwaitArchive, GroupInfo, JobInfo, Partial
from bucketq.queue.batch import Batch
from bucketq.queue.decide_reads import group_info
from bucketq.queue.policy import bucket_micro, tick_after_us, tokens_micro
from bucketq.queue.queue_index import QueueIndex
from bucketq.queue.rows import ENDED, NAMELESS, AttemptOutcome, GroupRow, Job, QueueRow, ScheduleRow

STEP_JOBS = 1_000
GROUPS_MAX = 32
SCHEDULES_MAX = 10_000


def cancel(batch: Batch, command: c.Cancel) -> JobInfo:
    job = batch.find(command.queue, command.job_id)
    cancel_everywhere(batch, job)
    return batch.summary(job)


def cancel_everywhere(batch: Batch, job: Job) -> None:
    for line in batch.state.queues[job.queue].seen_by(job.n):
        run = line.runs.get(job.n)
        if run is None or run.status not in ENDED:
            outcome: AttemptOutcome | None = "cancelled" if run is not None and run.status == "running" else None
            batch.emit(e.Ended(job.n, batch.state.next_ending, "cancelled", line.name, outcome))


def retry(batch: Batch, command: c.Retry) -> JobInfo | AwaitArchive:
    job = batch.find(command.queue, command.job_id)
    lines = batch.state.queues[job.queue].seen_by(job.n)
    runs = [(line, line.runs.get(job.n)) for line in lines]
    dead = [(line, run) for line, run in runs if run is not None and run.status == "dead"]
    if not dead:
        info = batch.summary(job)
        if info.status in ENDED:
            raise JobNotFound(command.job_id, f"it is {info.status}; only a dead job can be retried")
        return info
    if not all(run.archived for _, run in dead):
        return AwaitArchive()
    place = batch.state.next_n
    for line, _ in dead:
        batch.emit(e.Retried(job.n, place, line.name))
    return batch.summary(job)


def purge(batch: Batch, command: c.Purge) -> int | Partial | AwaitArchive:
    """One step: what is waiting is cancelled, what has ended leaves."""
    state = batch.state
    queue = state.queues.get(command.queue)
    if queue is None:
        return 0
    until = command.until or state.next_n
    purged, after = command.purged, command.after
    for job in list(islice(state.roster_after(queue, after), STEP_JOBS)):
        if job.n >= until:
            return purged
        if _purgeable(batch, job, command.status):
            if batch.summary(job).status in ENDED and not leave(batch, job):
                return AwaitArchive() if purged == command.purged else Partial(_rest(command, after, purged, until))
            cancel_everywhere(batch, job) if job.n in state.jobs else None
            purged += 1
        after = job.n
    if next(state.roster_after(queue, after), None) is None:
        return purged
    return Partial(_rest(command, after, purged, until))


def _rest(command: c.Purge, after: int, purged: int, until: int) -> c.Purge:
    return c.Purge(command.queue, command.status, after, purged, until)


def _purgeable(batch: Batch, job: Job, status: c.JobStatus | None) -> bool:
    actual = batch.summary(job).status
    return actual != "running" and (status is None or actual == status)


def leave(batch: Batch, job: Job) -> bool:
    """Remove a job that has ended everywhere, if all its endings are archived."""
    state = batch.state
    gone = ""
    for line in state.queues[job.queue].seen_by(job.n):
        run = line.runs.get(job.n)
        if run is None or run.status not in ENDED or not run.archived:
            return False
        gone = run.status if not gone else batch.summary(job).status
    batch.emit(e.Removed(job.n, gone))
    return True


def pause(batch: Batch, command: c.Pause) -> None:
    _configure(batch, command.queue, {"paused": True})


def resume(batch: Batch, command: c.Resume) -> None:
    _configure(batch, command.queue, {"paused": False})


def configure(batch: Batch, command: c.Configure) -> QueueRow:
    return _configure(batch, command.queue, command.changes)


def _configure(batch: Batch, name: str, changes: dict[str, object]) -> QueueRow:
    queue = batch.ensure_queue(name)
    row: QueueRow = replace(queue.row, **changes)
    old_rate = queue.row.rate_per_hour
    if row != queue.row:
        batch.emit(e.QueueSet(row))
    if row.rate_per_hour != old_rate:
        for line in list(queue.lines.values()):
            batch.emit(e.GroupSet(_with_bucket(line.group, old_rate, row.rate_per_hour, batch.now_us)))
    return row


def _with_bucket(group: GroupRow, old_rate: int | None, new_rate: int | None, now_us: int) -> GroupRow:
    """A bucket that is new starts full; one whose rate changes keeps what it holds, as far as there is room."""
    if old_rate is None or new_rate is None:
        return replace(group, tokens_micro=0, tokens_us=0)
    tokens = min(tokens_micro(group, old_rate, now_us), bucket_micro(new_rate))
    return replace(group, tokens_micro=tokens, tokens_us=now_us)


def subscribe(batch: Batch, command: c.Subscribe) -> GroupInfo:
    state = batch.state
    queue = batch.ensure_queue(command.queue)
    if command.group not in queue.lines:
        if len(queue.groups) >= GROUPS_MAX:
            raise QueueFull(f"queue {command.queue!r} has {GROUPS_MAX} groups already; unsubscribe one first")
        since = _start(batch, queue, command.start_us)
        batch.emit(e.GroupSet(GroupRow(command.queue, command.group, since, created_us=batch.now_us)))
        _hand_over(batch, queue, command.group, since)
    elif queue.lines[command.group].group.leaving:
        batch.emit(e.GroupSet(replace(queue.lines[command.group].group, leaving=False)))
    return group_info(batch, state.queues[command.queue].lines[command.group])


def _start(batch: Batch, queue: QueueIndex, start_us: int | None) -> int:
    """The number of the first job that the group sees. Numbers and push times grow together."""
    jobs = batch.state.jobs
    if start_us is None:
        return batch.state.next_n
    roster = [n for n in queue.roster if n in jobs]
    at = bisect_left(roster, start_us, key=lambda n: jobs[n].pushed_us)
    return roster[at] if at < len(roster) else batch.state.next_n


def _hand_over(batch: Batch, queue: QueueIndex, group: str, since: int) -> None:
    """What the nameless group has ended, the new one does not see; what waits there, waits for the new one."""
    nameless = queue.lines[NAMELESS]
    for n, run in [(n, run) for n, run in nameless.runs.items() if n >= since]:
        if run.status in ENDED:
            batch.emit(e.Skipped(n, group))
        elif run.status == "waiting":
            batch.emit(e.Forgotten(n, NAMELESS, run.token))


def unsubscribe(batch: Batch, command: c.Unsubscribe) -> bool | AwaitArchive:
    queue = batch.state.queues.get(command.queue)
    line = queue.lines.get(command.group) if queue is not None else None
    if queue is None or line is None:
        return False
    if not line.group.leaving:
        batch.emit(e.GroupSet(replace(line.group, leaving=True)))
    if any(run.status in ENDED and not run.archived for run in line.runs.values()):
        return AwaitArchive()
    over = [n for n, run in line.runs.items() if run.status in ENDED]
    token_floor = max((run.token for run in line.runs.values()), default=0)
    batch.emit(e.GroupRemoved(command.queue, command.group, token_floor))
    nameless = queue.lines[NAMELESS]
    for n in over:
        if n not in nameless.runs and queue.seen_by(n) == [nameless]:
            batch.emit(e.Skipped(n, NAMELESS))
    return True


def put_schedule(batch: Batch, command: c.PutSchedule) -> ScheduleRow:
    row = command.schedule
    batch.ensure_queue(row.queue)
    old = batch.state.schedules.get(row.name)
    if old is None and len(batch.state.schedules) >= SCHEDULES_MAX:
        raise QueueFull(f"there are {SCHEDULES_MAX:,} schedules already")
    if not row.next_us:
        goes_on = old is not None and not old.paused and _ticks_alike(old, row)
        row = replace(row, next_us=old.next_us if old and goes_on else tick_after_us(row, batch.now_us))
    if row != old:
        batch.emit(e.ScheduleSet(row))
    return row


def _ticks_alike(old: ScheduleRow, new: ScheduleRow) -> bool:
    """A schedule that is declared again, as at each start of a program, keeps the tick that comes next."""
    return (old.cron, old.every_ms, old.timezone) == (new.cron, new.every_ms, new.timezone)


def remove_schedule(batch: Batch, command: c.RemoveSchedule) -> bool:
    row = batch.state.schedules.get(command.name)
    if row is None or command.queue not in (None, row.queue):
        return False
    batch.emit(e.ScheduleRemoved(command.name))
    return True
