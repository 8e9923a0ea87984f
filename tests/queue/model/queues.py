"""Queues, their settings and counts, and consumer groups."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from bucketq import errors
from bucketq.queue import commands as c
from bucketq.queue.answers import AwaitArchive, GroupInfo, StatsInfo
from bucketq.queue.rows import ENDED, NAMELESS, QueueRow, Run
from tests.queue.model import line
from tests.queue.model.runs import Runs, Seen

GROUPS_MAX = 32


class QueueCommands(Runs):
    def _pause(self, command: c.Pause, seen: Seen) -> None:
        self.queues[command.queue] = replace(self.settings(command.queue), paused=True)

    def _resume(self, command: c.Resume, seen: Seen) -> None:
        self.queues[command.queue] = replace(self.settings(command.queue), paused=False)

    def _configure(self, command: c.Configure, seen: Seen) -> QueueRow:
        queue, before = command.queue, self.settings(command.queue)
        held = {}
        if before.rate_per_hour is not None:
            held = {group: line.bucket(self, queue, group) for group in [*self.named_groups(queue), NAMELESS]}
        self.queues[queue] = replace(before, **command.changes)
        rate = self.queues[queue].rate_per_hour
        if rate != before.rate_per_hour:
            self.buckets = {of: bucket for of, bucket in self.buckets.items() if of[0] != queue}
            if rate is not None:  # a bucket that was there keeps what it holds, as far as it goes in
                for group, micro in held.items():
                    self.buckets[queue, group] = (min(micro, line.full(rate)), self.now_us)
        return self.queues[queue]

    def _settings(self, command: c.Settings, seen: Seen) -> QueueRow:
        return self.settings(command.queue)

    def _listqueues(self, command: c.ListQueues, seen: Seen) -> list[str]:
        return sorted(self.queues)

    def _stats(self, command: c.Stats, seen: Seen) -> StatsInfo:
        if command.group is not None:
            self._check_group(command.queue, command.group)
            return self._count(command.queue, [command.group])
        return self._count(command.queue, [*self.named_groups(command.queue), NAMELESS])

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
        self.leaving.pop((queue, group), None)
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
            self.leaving[queue, group] = True
            return AwaitArchive()
        del self.groups[queue, group]
        self.leaving.pop((queue, group), None)
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
