"""Push and claim: the two ends of a queue."""

from __future__ import annotations

from msgspec import Raw

from bucketq.errors import QueueFull, SettingInvalid
from bucketq.queue import commands as c
from bucketq.queue import events as e
from bucketq.queue.answers import JobInfo
from bucketq.queue.apply import claimed, ended, pushed
from bucketq.queue.batch import Batch
from bucketq.queue.line import Lane, Line
from bucketq.queue.policy import TOKEN_MICRO, refill_us, tokens_micro
from bucketq.queue.queue_index import QueueIndex
from bucketq.queue.rows import NAMELESS, NOTHING, Job, Run


def push(batch: Batch, command: c.Push) -> list[JobInfo]:
    state = batch.state
    queue = state.queues.get(command.queue) or batch.ensure_queue(command.queue)
    return [_push_one(batch, queue, item) for item in command.items]


def _push_one(batch: Batch, queue: QueueIndex, item: c.PushItem) -> JobInfo:
    limit = queue.row.max_waiting
    if item.dedup is not None:
        earlier = _earlier(batch, queue.row.name, item.dedup)
        if earlier is not None:
            return earlier
    if limit is not None and max(line.waiting for line in queue.taking) >= limit:
        raise QueueFull(
            f"queue {queue.row.name!r} has {limit:,} jobs waiting, its max_waiting; push again when some are done"
        )
    return admit(batch, queue, item)


def admit(batch: Batch, queue: QueueIndex, item: c.PushItem) -> JobInfo:
    """Store a job, whatever the limits say."""
    state = batch.state
    now_us = batch.now_us
    name = queue.row.name
    dedup_until_us = 0
    if item.dedup is not None:
        window_us = item.dedup_window_us
        dedup_until_us = now_us + (queue.row.dedup_window_ms * 1_000 if window_us is None else window_us)
    run_us = item.run_us
    if item.delay_us:
        run_us = now_us + item.delay_us
    job = Job(
        state.next_n,
        name,
        item.payload,
        now_us,
        item.binary,
        item.priority,
        item.key,
        run_us,
        now_us + item.ttl_us if item.ttl_us else 0,
        item.max_attempts,
        item.dedup,
        item.headers,
    )
    event = e.Pushed(job, dedup_until_us)
    batch.events.append(event)
    pushed(state, event)
    return JobInfo(state.tag, name, job.n, now_us, job)


def _earlier(batch: Batch, queue: str, dedup: str) -> JobInfo | None:
    """The job that an earlier push with this dedup key stored, within its window."""
    state = batch.state
    row = state.dedups.get((queue, dedup))
    if row is None or row.until_us <= batch.now_us:
        return None
    job = state.jobs.get(row.n)
    if job is None:
        return JobInfo(state.tag, queue, row.n, batch.now_us, None, duplicate=True, gone=row.gone)
    info = batch.summary(job)
    return JobInfo(info.tag, queue, row.n, batch.now_us, job, info.run, info.group, True, None, info.groups)


def claim(batch: Batch, command: c.Claim) -> list[JobInfo]:
    found: list[JobInfo] = []
    if command.queues is None:
        _claim_any(batch, command, found)
        return found
    for name in command.queues:
        line = _line(batch, name, command.group)
        if line is not None and line.listed:
            _claim_from(batch, line, command, found, command.n)
            if len(found) >= command.n:
                break
    return found


def _line(batch: Batch, name: str, group: str) -> Line | None:
    queue = batch.state.queues.get(name)
    line = queue.lines.get(group) if queue is not None else None
    if line is None:
        if group != NAMELESS:
            raise SettingInvalid(f"queue {name!r} has no group {group!r}; subscribe it first")
        return None
    if line.closed and queue is not None:
        names = ", ".join(repr(line.name) for line in queue.groups)
        raise SettingInvalid(f"queue {name!r} has groups ({names}): say which one claims, group=…")
    return line


def _claim_any(batch: Batch, command: c.Claim, found: list[JobInfo]) -> None:
    """Go round the queues that have something to give, a job from each."""
    ring = batch.state.open.get(command.group)
    if ring and command.key is not None:
        for line in list(ring.values()):
            _claim_from(batch, line, command, found, command.n)
        return
    while ring and len(found) < command.n:  # each turn takes a job or closes the line
        line = next(iter(ring.values()))
        ring.move_to_end(line.queue)
        _claim_from(batch, line, command, found, len(found) + 1)


def _claim_from(batch: Batch, line: Line, command: c.Claim, found: list[JobInfo], want: int) -> None:
    """Claim until `want` are found or the line has no more to give."""
    if line.rate_per_hour is None:
        while len(found) < want and line.listed and _claim_one(batch, line, command, found):
            pass
        return
    tokens = tokens_micro(line.group, line.rate_per_hour, batch.now_us)
    before = len(found)
    while len(found) < want and line.listed and tokens >= TOKEN_MICRO and _claim_one(batch, line, command, found):
        tokens -= TOKEN_MICRO
    if len(found) > before:
        batch.emit(e.RateTaken(line.queue, tokens, line.name))
    if tokens < TOKEN_MICRO:
        batch.state.throttle(line, refill_us(tokens, line.rate_per_hour, batch.now_us))


def _claim_one(batch: Batch, line: Line, command: c.Claim, found: list[JobInfo]) -> bool:
    """Hand out the job whose turn it is. False: there is none. A job past its ttl expires on the way."""
    state = batch.state
    now_us = batch.now_us
    while True:
        lane = line.first() if command.key is None else _lane_of(line, command.key)
        if lane is None:
            return False
        n = line.head(lane)
        job = state.jobs[n]
        if not job.expires_us or job.expires_us > now_us:
            break
        batch.emit(e.Ended(n, state.next_ending, "expired", line.name))
    old = line.runs.get(n)
    lease_ms = command.lease_ms or state.queues[line.queue].row.lease_ms
    token, attempt = (state.token_floor + 1, 1) if old is None else (old.token + 1, old.attempt + 1)
    event = e.Claimed(n, token, attempt, lease_ms, line.name, command.worker)
    batch.events.append(event)
    run = claimed(job, old, event, now_us)
    state.start_run(line, lane, job, old, run)
    if command.auto_complete:
        run = complete_run(batch, line, job, run)
    found.append(JobInfo(state.tag, line.queue, n, now_us, job, run, line.name))
    return True


def _lane_of(line: Line, key: str) -> Lane | None:
    lane = line.lanes.get(key)
    return lane if lane is not None and lane.at is not None else None


def complete_run(batch: Batch, line: Line, job: Job, run: Run, result: Raw = NOTHING) -> Run:
    """A running job is done."""
    state = batch.state
    number = state.next_ending
    event = e.Ended(job.n, number, "done", line.name, "done", None, result)
    batch.events.append(event)
    new = ended(job, run, event, batch.now_us)
    state.finish_run(line, job, run, new)
    state.next_ending = number + 1
    return new
