"""The queue's rules, written a second time and as plainly as possible: docs/semantics.md as a program.

Where the rules leave a choice (the key whose turn it is, the order in which several jobs end in one command), the
reference is shown what the machine wrote, checks that it was allowed, and follows it. All else it decides alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from bucketq import errors
from bucketq.queue import commands as c
from bucketq.queue import events as e
from bucketq.queue.answers import AwaitArchive, GroupInfo, JobInfo, Partial, StatsInfo
from bucketq.queue.rows import (
    ENDED,
    HISTORY_MAX,
    NAMELESS,
    NOTHING,
    Attempt,
    AttemptOutcome,
    Job,
    QueueRow,
    Run,
    ScheduleRow,
    Segment,
    job_number,
)
from msgspec import Raw
from msgspec.structs import replace

from tests.queue.model import line, ticks
from tests.queue.model.tables import STATUS_ORDER, Dedup, Ending, Tables
from tests.queue.model.turns import Turns

GROUPS_MAX = 32
PURGE_STEP = 1_000
NOT_LOOKING_US = 3_000_000
CLOCK_SKEW_MAX_US = 600_000_000

Seen = Sequence[e.Event]


class Reference(Tables):
    """Decides commands like the machine, slowly. `random` is shared in kind, not in fact: same numbers, same order."""

    def __init__(self, random: Callable[[], float], tag: str = "t") -> None:
        super().__init__(tag)
        self.random = random
        self.turns = Turns()

    def decide(self, command: c.Command | c.Push, seen: Seen) -> Any:
        """The answer to a command, or its error, with everything as it was."""
        before = self.copy()
        try:
            answer = getattr(self, "_" + type(command).__name__.lower())(command, seen)
        except errors.BucketqError:
            self.restore(before)
            raise
        self._follow_endings(before["next_ending"], seen)
        self.turns.look(self)
        return answer

    def decide_due(self, seen: Seen) -> None:
        """Upkeep: ticks, ttl, leaving, and lastly leases."""
        first = self.next_ending
        self._tick(seen)
        for n, group in list(self.runs):
            if self.runs[n, group].status == "waiting" and self.is_past_ttl(n):
                self._end(n, group, "expired")
        for n in [n for n in self.jobs if self._may_leave(n)]:
            self._remove(n)
        self._expire_leases(seen)
        self._follow_endings(first, seen)
        self.turns.look(self)

    def rearm(self) -> None:
        """Nobody looked: every lease begins anew."""
        self.armed = dict.fromkeys(self.armed, self.mono_us)

    # Pushing

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

    def _store(self, job: Job) -> None:
        self.jobs[job.n] = job
        for group in self.named_groups(job.queue) or [NAMELESS]:
            self.runs[job.n, group] = self.fresh(job.n)

    def _most_waiting(self, queue: str) -> int:
        return max(
            sum(run.status == "waiting" for _, run in self.in_group(queue, group))
            for group in self.named_groups(queue) or [NAMELESS]
        )

    # Claiming

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
                self._take(event.n, command, told)
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
        return (queue, group) in self.groups if group else not self.named_groups(queue)

    def _take(self, n: int, command: c.Claim, told: list[JobInfo]) -> None:
        """Hand the job out, or find that it has expired."""
        if self.is_past_ttl(n):
            self._end(n, command.group, "expired")
            return
        queue, group = self.jobs[n].queue, command.group
        settings = self.settings(queue)
        if settings.rate_per_hour is not None:
            self.buckets[queue, group] = (line.bucket(self, queue, group) - line.TOKEN_MICRO, self.now_us)
        run = self.runs[n, group]
        self.tokens[n, group] = self.tokens.get((n, group), 0) + 1
        self.runs[n, group] = replace(
            run,
            status="running",
            attempt=run.attempt + 1,
            token=self.tokens[n, group],
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

    # Ending and giving back

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
        if run.status != "running" or run.token != claim.token:
            raise errors.LeaseLost
        return n, claim.group

    def _is_spent(self, n: int, run: Run) -> bool:
        job = self.jobs[n]
        return run.attempt >= (job.max_attempts or self.settings(job.queue).max_attempts)

    def _backoff_us(self, n: int, run: Run) -> int:
        backoff = self.settings(self.jobs[n].queue).backoff
        most_ms = min(backoff.max_ms, backoff.initial_ms * backoff.factor ** (run.attempt - 1))
        return int(self.random() * most_ms * 1_000)

    def _give_back(
        self, n: int, group: str, outcome: AttemptOutcome, attempt: int, wait_us: int = 0, error: str | None = None
    ) -> None:
        if self.is_past_ttl(n):
            self._end(n, group, "expired", outcome, error)
            return
        run = self.runs[n, group]
        self.armed.pop((n, group))
        if group == NAMELESS and self.others_have(n):
            del self.runs[n, group]
            return
        self.runs[n, group] = replace(
            run,
            status="waiting",
            attempt=attempt,
            run_us=self.now_us + wait_us if wait_us else 0,
            error=error,
            history=self._history(run, outcome, error),
        )

    def _end(
        self,
        n: int,
        group: str,
        status: Any,
        outcome: AttemptOutcome | None = None,
        error: str | None = None,
        result: Raw = NOTHING,
    ) -> None:
        run = self.runs[n, group]
        self.armed.pop((n, group), None)
        self.runs[n, group] = replace(
            run,
            status=status,
            endings=run.endings + 1,
            ended=self.next_ending,
            finished_us=self.now_us,
            result=result,
            error=error,
            archived=False,
            history=self._history(run, outcome, error) if outcome else run.history,
        )
        self.endings[self.next_ending] = Ending(n, group)
        self.next_ending += 1
        self.totals[self.jobs[n].queue, group, status] += 1

    def _history(self, run: Run, outcome: AttemptOutcome, error: str | None) -> tuple[Attempt, ...]:
        attempt = Attempt(run.worker, run.claimed_us, self.now_us, outcome, error)
        return (*run.history, attempt)[-HISTORY_MAX:]

    def _follow_endings(self, first: Any, seen: Seen) -> None:
        """Several endings of one command have no order of their own: take the machine's."""
        mine = {(ending.n, ending.group): number for number, ending in self.endings.items() if number >= first}
        theirs = [event for event in seen if isinstance(event, e.Ended)]
        what = [(event.n, event.group, event.status) for event in theirs]
        wanted = [(n, group, self.runs[n, group].status) for n, group in mine]
        assert sorted(what) == sorted(wanted), f"ended {what}, not {wanted}"
        for number, event in enumerate(theirs, first):
            assert event.number == number
            self.endings[number] = Ending(event.n, event.group)
            self.runs[event.n, event.group] = replace(self.runs[event.n, event.group], ended=number)

    # Jobs by name

    def _cancel(self, command: c.Cancel, seen: Seen) -> JobInfo:
        n = self._find(command.queue, command.job_id)
        self._cancel_runs(n)
        return self._info(n, groups=True)

    def _cancel_runs(self, n: int) -> None:
        for group, run in self.runs_of(n).items():
            if run.status not in ENDED:
                self._end(n, group, "cancelled", "cancelled" if run.status == "running" else None)

    def _retry(self, command: c.Retry, seen: Seen) -> JobInfo | AwaitArchive:
        n = self._find(command.queue, command.job_id)
        runs = self.runs_of(n)
        dead = [group for group, run in runs.items() if run.status == "dead"]
        if not dead:
            if all(run.status in ENDED for run in runs.values()):
                raise errors.JobNotFound(command.job_id)
            return self._info(n, groups=True)
        if not all(runs[group].archived for group in dead):
            return AwaitArchive()
        place = self._number()
        for group in dead:
            run = self.runs[n, group]
            self.runs[n, group] = replace(run, status="waiting", attempt=0, place=place, run_us=0, archived=False)
        return self._info(n, groups=True)

    def _purge(self, command: c.Purge, seen: Seen) -> int | Partial | AwaitArchive:
        """Goes by admission, a thousand jobs at a time; an ending that is not yet archived stops it for now."""
        rest = replace(command, until=command.until or self.next_number)
        ahead = [n for n in sorted(self.jobs_of(command.queue)) if rest.after < n < rest.until]
        for n in ahead[:PURGE_STEP]:
            status = self.job_status(n)
            rest = replace(rest, after=n)
            if status != "running" and command.status in (None, status):
                if status in ENDED and self.unarchived(n):
                    rest = replace(rest, after=n - 1)
                    return Partial(rest) if rest.purged > command.purged else AwaitArchive()
                if status in ENDED:
                    self._remove(n)
                else:
                    self._cancel_runs(n)
                rest = replace(rest, purged=rest.purged + 1)
        return Partial(rest) if len(ahead) > PURGE_STEP else rest.purged

    def _get(self, command: c.Get, seen: Seen) -> JobInfo:
        return self._info(self._find(command.queue, command.job_id), groups=True)

    def _listjobs(self, command: c.ListJobs, seen: Seen) -> list[JobInfo]:
        if command.group is not None:
            self._check_group(command.queue, command.group)
        after = (job_number(self.tag, command.after) or 0) if command.after is not None else 0
        found: list[JobInfo] = []
        for n in sorted(self.jobs_of(command.queue)):
            if n <= after:
                continue
            if command.group is None:
                status = self.job_status(n)
            elif (n, command.group) in self.runs:
                status = self.status(self.runs[n, command.group])
            else:
                continue
            if command.status in (None, status):
                found.append(self._info(n, command.group, groups=command.group is None))
        return found[: command.limit]

    def _find(self, queue: str, job_id: str) -> int:
        n = job_number(self.tag, job_id)
        if n is None or n not in self.jobs or self.jobs[n].queue != queue:
            raise errors.JobNotFound(job_id)
        return n

    def _info(self, n: int, group: str | None = None, groups: bool = False) -> JobInfo:
        """The job as it is for a group, or for the group whose status is the job's."""
        runs = self.runs_of(n)
        job = self.jobs[n]
        if group is None:
            group = min(runs, key=lambda of: STATUS_ORDER.index(self.status(runs[of])))
        shown: dict[str, Run | None] | None = None
        if groups and self.named_groups(job.queue):
            shown = dict(runs)
        return JobInfo(self.tag, job.queue, n, self.now_us, job, runs.get(group), group, groups=shown)

    # Leaving

    def _may_leave(self, n: int) -> bool:
        leaves_us = self.leaves_us(n)
        return leaves_us is not None and leaves_us <= self.now_us

    def _remove(self, n: int) -> None:
        gone = self.job_status(n)
        job = self.jobs.pop(n)
        for group in list(self.named_groups(job.queue)) + [NAMELESS]:
            self.runs.pop((n, group), None)
        if job.dedup is not None and self.dedups[job.queue, job.dedup].n == n:
            self.dedups[job.queue, job.dedup] = self.dedups[job.queue, job.dedup]._replace(gone=gone)

    def _expire_leases(self, seen: Seen) -> None:
        late_us = {
            of: self.mono_us - armed_us - self.runs[of].lease_ms * 1_000 for of, armed_us in self.armed.items()
        }
        lost = {(event.n, event.group) for event in seen if getattr(event, "outcome", None) == "lost"}
        if not lost and any(over_us > NOT_LOOKING_US for over_us in late_us.values()):
            self.rearm()
            return
        for (n, group), over_us in late_us.items():
            if over_us < 0 and not ((n, group) in lost and self._is_over_by_wall(n, group)):
                continue
            run = self.runs[n, group]
            if self._is_spent(n, run):
                self._end(n, group, "dead", "lost")
            else:
                self._give_back(n, group, "lost", run.attempt)

    def _is_over_by_wall(self, n: int, group: str) -> bool:
        """A process that has just come may end such a lease."""
        run = self.runs[n, group]
        return self.now_us - run.beat_us > run.lease_ms * 1_000 + CLOCK_SKEW_MAX_US

    # Queues and groups

    def _make_queue(self, queue: str) -> None:
        self.queues.setdefault(queue, QueueRow(queue))

    def _pause(self, command: c.Pause, seen: Seen) -> None:
        self.queues[command.queue] = replace(self.settings(command.queue), paused=True)

    def _resume(self, command: c.Resume, seen: Seen) -> None:
        self.queues[command.queue] = replace(self.settings(command.queue), paused=False)

    def _configure(self, command: c.Configure, seen: Seen) -> QueueRow:
        before = self.settings(command.queue)
        self.queues[command.queue] = replace(before, **command.changes)
        if self.queues[command.queue].rate_per_hour != before.rate_per_hour:
            self.buckets = {of: bucket for of, bucket in self.buckets.items() if of[0] != command.queue}
        return self.queues[command.queue]

    def _settings(self, command: c.Settings, seen: Seen) -> QueueRow:
        return self.settings(command.queue)

    def _listqueues(self, command: c.ListQueues, seen: Seen) -> list[str]:
        return sorted(self.queues)

    def _stats(self, command: c.Stats, seen: Seen) -> StatsInfo:
        if command.group is not None:
            self._check_group(command.queue, command.group)
            return self._count(command.queue, [command.group])
        return self._count(command.queue, [*self.named_groups(command.queue), NAMELESS])

    def _check_group(self, queue: str, group: str) -> None:
        """Of a queue that is there one can only ask about a group that is there; the nameless one always is."""
        if group and queue in self.queues and (queue, group) not in self.groups:
            raise errors.SettingInvalid(f"queue {queue} has no group {group!r}")

    def _count(self, queue: str, groups: list[str]) -> StatsInfo:
        now = Counter(self.status(run) for group in groups for _, run in self.in_group(queue, group))
        ever = Counter[str]()
        for (of, group, status), count in self.totals.items():
            if of == queue and group in groups:
                ever[status] += count
        return StatsInfo(
            queue,
            ready=now["ready"],
            scheduled=now["scheduled"],
            running=now["running"],
            dead=now["dead"],
            done=ever["done"],
            cancelled=ever["cancelled"],
            expired=ever["expired"],
            died=ever["dead"],
            paused=self.settings(queue).paused,
        )

    def _subscribe(self, command: c.Subscribe, seen: Seen) -> GroupInfo:
        queue, group = command.queue, command.group
        self._make_queue(queue)
        if (queue, group) not in self.groups:
            if len(self.named_groups(queue)) >= GROUPS_MAX:
                raise errors.QueueFull(queue)
            self.groups[queue, group] = self.now_us
            for n in self.jobs_of(queue):
                if command.start_us is not None and self.jobs[n].pushed_us >= command.start_us:
                    self._show(n, group)
        return self._group_info(queue, group)

    def _show(self, n: int, group: str) -> None:
        """A new group sees the job, unless it had ended for the nameless one."""
        nameless = self.runs.get((n, NAMELESS))
        if nameless is not None and nameless.status in ENDED:
            return
        self.runs[n, group] = self.fresh(n)
        if nameless is not None and nameless.status == "waiting":
            del self.runs[n, NAMELESS]

    def _unsubscribe(self, command: c.Unsubscribe, seen: Seen) -> bool | AwaitArchive:
        queue, group = command.queue, command.group
        if (queue, group) not in self.groups:
            return False
        if any(run.status in ENDED and not run.archived for _, run in self.in_group(queue, group)):
            return AwaitArchive()
        del self.groups[queue, group]
        self.buckets.pop((queue, group), None)
        for total in [total for total in self.totals if total[:2] == (queue, group)]:
            del self.totals[total]
        for n in self.jobs_of(queue):
            forgotten = self.runs.pop((n, group), None)
            self.armed.pop((n, group), None)
            if not self.runs_of(n):
                ended = forgotten is not None and forgotten.status in ENDED
                self.runs[n, NAMELESS] = self._trace() if ended else self.fresh(n)
        return True

    def _trace(self) -> Run:
        """What stays of a job that only groups had ended that are gone now: it is not handed out again."""
        return Run(status="cancelled", finished_us=self.now_us, archived=True)

    def _listgroups(self, command: c.ListGroups, seen: Seen) -> list[GroupInfo]:
        return [self._group_info(command.queue, group) for group in sorted(self.named_groups(command.queue))]

    def _group_info(self, queue: str, group: str) -> GroupInfo:
        return GroupInfo(queue, group, 0, self.groups[queue, group], self._count(queue, [group]))

    # Schedules

    def _putschedule(self, command: c.PutSchedule, seen: Seen) -> ScheduleRow:
        row = command.schedule
        old = self.schedules.get(row.name)
        if row.next_us == 0:
            goes_on = old is not None and ticks.same_ticks(old, row) and (row.paused or not old.paused)
            row = replace(row, next_us=old.next_us if old and goes_on else ticks.tick_after(row, self.now_us))
        self._make_queue(row.queue)
        self.schedules[row.name] = row
        return row

    def _removeschedule(self, command: c.RemoveSchedule, seen: Seen) -> bool:
        row = self.schedules.get(command.name)
        if row is None or command.queue not in (None, row.queue):
            return False
        del self.schedules[command.name]
        return True

    def _listschedules(self, command: c.ListSchedules, seen: Seen) -> list[ScheduleRow]:
        return [row for _, row in sorted(self.schedules.items()) if command.queue in (None, row.queue)]

    def _tick(self, seen: Seen) -> None:
        """One job per tick; whose comes first when several schedules are due is the machine's choice."""
        owed: list[ScheduleRow] = []
        for name, row in self.schedules.items():
            if not row.paused:
                count, next_us = ticks.due_ticks(row, self.now_us)
                owed += [row] * count
                self.schedules[name] = replace(row, next_us=next_us)
        pushed = [event.job for event in seen if isinstance(event, e.Pushed)]
        assert len(pushed) == len(owed), f"{pushed} for the ticks of {owed}"
        for job in pushed:
            row = next(row for row in owed if (row.queue, row.payload) == (job.queue, job.payload))
            owed.remove(row)
            self._make_queue(row.queue)
            self._store(
                Job(
                    n=self._number(),
                    queue=row.queue,
                    payload=row.payload,
                    pushed_us=self.now_us,
                    binary=row.binary,
                    priority=row.priority,
                    key=row.key,
                    expires_us=self.now_us + row.ttl_ms * 1_000 if row.ttl_ms else 0,
                    max_attempts=row.max_attempts,
                    headers=row.headers,
                )
            )

    def _number(self) -> int:
        self.next_number += 1
        return self.next_number - 1

    # The archive

    def _seal(self, command: c.Seal, seen: Seen) -> Segment | None:
        waiting = [number for number, ending in sorted(self.endings.items()) if ending.where == "open"]
        waiting = waiting[: command.endings_max]
        if self.segment is not None or not waiting:
            return None
        self.segments += 1
        self.segment = Segment(self.segments, command.folder, waiting[0], waiting[-1])
        for number in waiting:
            self.endings[number] = self.endings[number]._replace(where="sealed")
        return self.segment

    def _drop(self, command: c.Drop, seen: Seen) -> None:
        if self.segment is None or self.segment.k != command.k:
            return
        self.segment = None
        archived = [(number, ending) for number, ending in self.endings.items() if ending.where == "sealed"]
        for number, ending in archived:
            self.endings[number] = ending._replace(where="archived")
            run = self.runs.get((ending.n, ending.group))
            if run is not None and run.ended == number:
                self.runs[ending.n, ending.group] = replace(run, archived=True)
        for event in seen:  # who may leave leaves now or with the next upkeep
            if isinstance(event, e.Removed):
                assert self._may_leave(event.n), f"{event} came too early"
                self._remove(event.n)

    def _prune(self, command: c.Prune, seen: Seen) -> None:
        pass
