"""Pushing and claiming, and what a worker does with its claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from bucketq import errors
from bucketq.queue import commands as c
from bucketq.queue import events as e
from bucketq.queue.answers import JobInfo
from bucketq.queue.rows import NAMELESS, NOTHING, Job, Run, job_number
from tests.queue.model import line
from tests.queue.model.runs import Runs, Seen
from tests.queue.model.tables import Dedup
from tests.queue.model.turns import Turns


class ClaimCommands(Runs):
    random: Callable[[], float]
    turns: Turns

    def _push(self, command: c.Push, seen: Seen) -> list[JobInfo]:
        self._make_queue(command.queue)
        told = [self._push_item(command.queue, item) for item in command.items]
        limit = self.settings(command.queue).max_waiting
        if limit is not None and not all(info.duplicate for info in told) and self._most_waiting(command.queue) > limit:
            raise errors.QueueFull(command.queue)
        return told

    def _push_item(self, queue: str, item: c.PushItem) -> JobInfo:
        now_us = self.now_us
        if item.dedup is not None:
            earlier = self.dedups.get((queue, item.dedup))
            if earlier is not None and now_us < earlier.until_us:
                if earlier.n in self.jobs:
                    return replace(self._info(earlier.n, groups=True), duplicate=True)
                return JobInfo(self.tag, queue, earlier.n, now_us, None, duplicate=True, gone=earlier.gone)
        job = Job(
            n=self._number(),
            queue=queue,
            payload=item.payload,
            pushed_us=now_us,
            binary=item.binary,
            priority=item.priority,
            key=item.key,
            run_us=now_us + item.delay_us if item.delay_us else item.run_us,
            expires_us=now_us + item.ttl_us if item.ttl_us else 0,
            max_attempts=item.max_attempts,
            dedup=item.dedup,
            headers=item.headers,
        )
        self._store(job)
        if item.dedup is not None:
            window_us = item.dedup_window_us
            if window_us is None:
                window_us = self.settings(queue).dedup_window_ms * 1_000
            self.dedups[queue, item.dedup] = Dedup(job.n, now_us + window_us)
        return JobInfo(self.tag, queue, job.n, now_us, job)

    def _most_waiting(self, queue: str) -> int:
        return max(
            sum(run.status == "waiting" for _, run in self.in_group(queue, group))
            for group in self.named_groups(queue) or [NAMELESS]
        )

    def _claim(self, command: c.Claim, seen: Seen) -> list[JobInfo]:
        self._try_claim(command)
        told: list[JobInfo] = []
        for event in seen:
            if isinstance(event, e.Claimed) or (isinstance(event, e.Ended) and event.status == "expired"):
                assert len(told) < command.n, "it went on after the last job"
                assert event.group == command.group
                assert event.n in self._choices(command), f"{event} is not next: {self._choices(command)}"
                assert self.is_past_ttl(event.n) == isinstance(event, e.Ended)
                if command.key is None and isinstance(event, e.Claimed):
                    self.turns.serve(self, event.n, command.group)
                else:
                    self.turns.forget()
                self._take(event.n, command, told, getattr(event, "token", 0))
        if len(told) < command.n:
            assert not self._choices(command), f"it gave {len(told)}, and not {self._choices(command)}"
        return told

    def _try_claim(self, command: c.Claim) -> None:
        """Raises if the claim gets as far as a queue that has no such group."""
        if all(self._serves(queue, command.group) for queue in command.queues or ()):
            return
        before = self.copy()
        told: list[JobInfo] = []
        while len(told) < command.n and (choices := self._choices(command)):
            self._take(choices[0], command, told)
        self.restore(before)

    def _choices(self, command: c.Claim) -> list[int]:
        """The jobs of which the claim may take any one next."""
        if command.queues is None:
            serving = [queue for queue in self.queues if self._serves(queue, command.group)]
            found = [line.choices(self, queue, command.group, command.key) for queue in serving]
            return [n for by_key in found for n in by_key.values()]
        for queue in command.queues:
            if not self._serves(queue, command.group):
                raise errors.SettingInvalid(f"queue {queue} has no group {command.group!r}")
            by_key = line.choices(self, queue, command.group, command.key)
            if by_key:
                return list(by_key.values())
        return []

    def _serves(self, queue: str, group: str) -> bool:
        if not group:
            return not self.named_groups(queue)
        return (queue, group) in self.groups and (queue, group) not in self.leaving

    def _take(self, n: int, command: c.Claim, told: list[JobInfo], token: int | None = None) -> None:
        """Hand the job out, or find that it has expired. A token is the next one, and never one that was given out
        before for this job and group, even if the run was forgotten since: then it may be any that is higher."""
        if self.is_past_ttl(n):
            self._end(n, command.group, "expired")
            return
        queue, group = self.jobs[n].queue, command.group
        settings = self.settings(queue)
        if settings.rate_per_hour is not None:
            self.buckets[queue, group] = (line.bucket(self, queue, group) - line.TOKEN_MICRO, self.now_us)
        run = self.runs[n, group]
        lowest = self.tokens.get((n, group), 0) + 1
        token = lowest if token is None else token
        assert token == lowest if run.token else token >= lowest, f"the token {token} was given out before"
        self.tokens[n, group] = token
        self.runs[n, group] = replace(
            run,
            status="running",
            attempt=run.attempt + 1,
            token=token,
            lease_ms=command.lease_ms or settings.lease_ms,
            claimed_us=self.now_us,
            beat_us=self.now_us,
            worker=command.worker,
            progress=NOTHING,
        )
        self.armed[n, group] = self.mono_us
        if command.auto_complete:
            self._end(n, group, "done", "done")
        told.append(self._info(n, group))

    def _complete(self, command: c.Complete, seen: Seen) -> None:
        n, group = self._held(command.claim)
        self._end(n, group, "done", "done", result=NOTHING if command.result is None else command.result)

    def _fail(self, command: c.Fail, seen: Seen) -> JobInfo:
        n, group = self._held(command.claim)
        run = self.runs[n, group]
        if command.dead or self._is_spent(n, run):
            self._end(n, group, "dead", "failed", error=command.error)
        else:
            wait_us = command.retry_in_us if command.retry_in_us is not None else self._backoff_us(n, run)
            self._give_back(n, group, "failed", run.attempt, wait_us, command.error)
        return self._info(n, group)

    def _release(self, command: c.Release, seen: Seen) -> None:
        n, group = self._held(command.claim)
        self._give_back(n, group, "released", self.runs[n, group].attempt - 1, command.delay_us)

    def _heartbeat(self, command: c.Heartbeat, seen: Seen) -> None:
        n, group = self._held(command.claim)
        run = self.runs[n, group]
        self.armed[n, group] = self.mono_us
        progress = command.progress if command.progress is not None else run.progress
        self.runs[n, group] = replace(run, beat_us=self.now_us, progress=progress)

    def _transact(self, command: c.Transact, seen: Seen) -> list[Any]:
        return [getattr(self, "_" + type(part).__name__.lower())(part, seen) for part in command.parts]

    def _completemany(self, command: c.CompleteMany, seen: Seen) -> list[errors.BucketqError | None]:
        told: list[errors.BucketqError | None] = []
        for part in command.parts:
            try:
                self._complete(part, seen)
                told.append(None)
            except errors.BucketqError as error:
                told.append(error)
        return told

    def _held(self, claim: c.Handle) -> tuple[int, str]:
        n = job_number(self.tag, claim.job_id)
        job = self.jobs.get(n) if n is not None else None
        run = self.runs.get((n, claim.group)) if n is not None else None
        if n is None or job is None or run is None or job.queue != claim.queue:
            raise errors.LeaseLost
        if run.status != "running" or run.token != claim.token or (claim.queue, claim.group) in self.leaving:
            raise errors.LeaseLost
        return n, claim.group

    def _backoff_us(self, n: int, run: Run) -> int:
        backoff = self.settings(self.jobs[n].queue).backoff
        most_ms = min(backoff.max_ms, backoff.initial_ms * backoff.factor ** (run.attempt - 1))
        return int(self.random() * most_ms * 1_000)
