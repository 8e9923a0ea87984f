"""What the holder of a claim may ask: complete, fail, release, heartbeat, and several of these at once."""

from __future__ import annotations

from bucketq.errors import BucketqError
from bucketq.queue import commands as c
from bucketq.queue import events as e
from bucketq.queue.answers import JobInfo
from bucketq.queue.batch import Batch
from bucketq.queue.decide_jobs import complete_run, push
from bucketq.queue.line import Line
from bucketq.queue.policy import backoff_us
from bucketq.queue.rows import NAMELESS, NOTHING, AttemptOutcome, Job, Run


def complete(batch: Batch, command: c.Complete) -> None:
    line, job, run = batch.held(command.claim)
    complete_run(batch, line, job, run, command.result or NOTHING)


def fail(batch: Batch, command: c.Fail) -> JobInfo:
    line, job, run = batch.held(command.claim)
    if command.dead:
        batch.emit(e.Ended(job.n, batch.state.next_ending, "dead", line.name, "failed", command.error))
    else:
        give_back(batch, line, job, run, "failed", command.error, command.retry_in_us)
    return batch.info(line, job, line.runs.get(job.n))


def release(batch: Batch, command: c.Release) -> None:
    line, job, run = batch.held(command.claim)
    run_us = batch.now_us + command.delay_us if command.delay_us else batch.now_us
    _wait_again(batch, line, job, "released", run.attempt - 1, run_us, None)


def heartbeat(batch: Batch, command: c.Heartbeat) -> None:
    line, job, _ = batch.held(command.claim)
    batch.emit(e.Beat(job.n, line.name, command.progress or NOTHING))


def give_back(
    batch: Batch,
    line: Line,
    job: Job,
    run: Run,
    outcome: AttemptOutcome,
    error: str,
    retry_in_us: int | None,
) -> None:
    """An attempt was spent: the job waits again, or it is dead."""
    queue = batch.state.queues[job.queue].row
    if run.attempt >= (job.max_attempts or queue.max_attempts):
        batch.emit(e.Ended(job.n, batch.state.next_ending, "dead", line.name, outcome, error))
        return
    if retry_in_us is None:
        retry_in_us = backoff_us(queue.backoff, run.attempt, batch.random()) if outcome == "failed" else 0
    _wait_again(batch, line, job, outcome, run.attempt, batch.now_us + retry_in_us, error)


def _wait_again(
    batch: Batch, line: Line, job: Job, outcome: AttemptOutcome, attempt: int, run_us: int, error: str | None
) -> None:
    if job.expires_us and job.expires_us <= batch.now_us:
        batch.emit(e.Ended(job.n, batch.state.next_ending, "expired", line.name, outcome, error))
    elif line.name == NAMELESS and _has_group(batch, job):
        batch.emit(e.Forgotten(job.n, line.name, line.runs[job.n].token))
    else:
        batch.emit(e.Returned(job.n, outcome, attempt, run_us, line.name, error))


def _has_group(batch: Batch, job: Job) -> bool:
    return any(group.group.since <= job.n for group in batch.state.queues[job.queue].groups)


def transact(batch: Batch, command: c.Transact) -> list[object]:
    """The machine takes a failed command back whole, so the first error is enough."""
    answers: list[object] = []
    for part in command.parts:
        if isinstance(part, c.Push):
            answers.append(push(batch, part))
        elif isinstance(part, c.Complete):
            complete(batch, part)
            answers.append(None)
        elif isinstance(part, c.Fail):
            answers.append(fail(batch, part))
        else:
            release(batch, part)
            answers.append(None)
    return answers


def complete_many(batch: Batch, command: c.CompleteMany) -> list[BucketqError | None]:
    answers: list[BucketqError | None] = []
    for part in command.parts:
        try:
            complete(batch, part)
            answers.append(None)
        except BucketqError as error:
            answers.append(error)
    return answers
