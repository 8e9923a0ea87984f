"""Reads. They are commands too, decided in the batch and answered when it lands."""

from __future__ import annotations

from itertools import islice

from bucketq.errors import JobNotFound, SettingInvalid
from bucketq.queue import commands as c
from bucketq.queue.answers import GroupInfo, JobInfo, StatsInfo, status_of
from bucketq.queue.batch import Batch
from bucketq.queue.line import Line, is_waiting
from bucketq.queue.queue_index import QueueIndex
from bucketq.queue.rows import QueueRow, ScheduleRow, job_number


def get(batch: Batch, command: c.Get) -> JobInfo:
    return batch.summary(batch.find(command.queue, command.job_id))


def list_jobs(batch: Batch, command: c.ListJobs) -> list[JobInfo]:
    queue = batch.state.queues.get(command.queue)
    after = 0
    if command.after is not None:
        number = job_number(batch.state.tag, command.after)
        if number is None:
            raise JobNotFound(command.after, "not an id of this bucket; `after` takes the id of the last job seen")
        after = number
    if queue is None:
        return []
    if command.group is None:
        infos = (batch.summary(job) for job in batch.state.roster_after(queue, after))
    else:
        line = _line(queue, command.group)
        infos = (
            batch.info(line, job, line.runs.get(job.n))
            for job in batch.state.roster_after(queue, after)
            if line in queue.seen_by(job.n)
        )
    if command.status is not None:
        infos = (info for info in infos if info.status == command.status)
    return list(islice(infos, command.limit))


def _line(queue: QueueIndex, group: str) -> Line:
    line = queue.lines.get(group)
    if line is None:
        raise SettingInvalid(f"queue {queue.row.name!r} has no group {group!r}")
    return line


def stats(batch: Batch, command: c.Stats) -> StatsInfo:
    queue = batch.state.queues.get(command.queue)
    if queue is None:
        return StatsInfo(command.queue)
    lines = list(queue.lines.values()) if command.group is None else [_line(queue, command.group)]
    return StatsInfo(
        command.queue,
        ready=sum(line.ready for line in lines),
        scheduled=sum(line.scheduled for line in lines),
        running=sum(line.running for line in lines),
        dead=sum(line.dead for line in lines),
        done=sum(line.group.done + line.unsealed.get("done", 0) for line in lines),
        cancelled=sum(line.group.cancelled + line.unsealed.get("cancelled", 0) for line in lines),
        expired=sum(line.group.expired + line.unsealed.get("expired", 0) for line in lines),
        died=sum(line.group.dead + line.unsealed.get("dead", 0) for line in lines),
        oldest_ready_age=max(oldest_ready_us(batch, queue, line) for line in lines) / 1e6,
        paused=queue.row.paused,
    )


def oldest_ready_us(batch: Batch, queue: QueueIndex, line: Line) -> int:
    """How long the ready job that was admitted first has been ready. Looks on from where the last look ended."""
    if not line.ready:
        return 0
    state = batch.state
    for job in state.roster_after(queue, line.oldest - 1):
        run = line.runs.get(job.n)
        if is_waiting(run) and status_of(job, run, state.now_us) == "ready" and line in queue.seen_by(job.n):
            line.oldest = job.n
            since_us = max(job.pushed_us, job.run_us if run is None else run.run_us)
            return max(0, batch.now_us - since_us)
    return 0


def list_queues(batch: Batch, command: c.ListQueues) -> list[str]:
    return sorted(batch.state.queues)


def settings(batch: Batch, command: c.Settings) -> QueueRow:
    queue = batch.state.queues.get(command.queue)
    return queue.row if queue is not None else QueueRow(command.queue)


def list_groups(batch: Batch, command: c.ListGroups) -> list[GroupInfo]:
    queue = batch.state.queues.get(command.queue)
    if queue is None:
        return []
    return [group_info(batch, line) for line in sorted(queue.groups, key=lambda line: line.name)]


def group_info(batch: Batch, line: Line) -> GroupInfo:
    row = line.group
    return GroupInfo(row.queue, row.name, row.since, row.created_us, stats(batch, c.Stats(row.queue, row.name)))


def list_schedules(batch: Batch, command: c.ListSchedules) -> list[ScheduleRow]:
    rows = batch.state.schedules.values()
    chosen = [row for row in rows if command.queue is None or row.queue == command.queue]
    return sorted(chosen, key=lambda row: row.name)
