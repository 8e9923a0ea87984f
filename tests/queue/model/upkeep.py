"""What time brings: ticks and the end of leases; and the archive."""

from __future__ import annotations

from msgspec.structs import replace

from bucketq.queue import commands as c
from bucketq.queue import events as e
from bucketq.queue.rows import Job, ScheduleRow, Segment
from tests.queue.model import ticks
from tests.queue.model.runs import Runs, Seen

NOT_LOOKING_US = 3_000_000
CLOCK_SKEW_MAX_US = 600_000_000


class UpkeepCommands(Runs):
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

    def _expire_leases(self, seen: Seen) -> None:
        late_us = {of: self.mono_us - armed_us - self.runs[of].lease_ms * 1_000 for of, armed_us in self.armed.items()}
        back = [event for event in seen if isinstance(event, (e.Returned, e.Ended))]
        lost = {(event.n, event.group) for event in back if event.outcome == "lost"}
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

    def rearm(self) -> None:
        """Nobody looked: every lease begins anew."""
        self.armed = dict.fromkeys(self.armed, self.mono_us)

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
