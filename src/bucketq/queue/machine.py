"""The state machine: commands in, answers and events out. Pure: time and random numbers come from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bucketq.queue import commands as c
from bucketq.queue import decide_claims, decide_jobs, decide_queues, decide_reads, decide_upkeep
from bucketq.queue import events as e
from bucketq.queue.apply import apply
from bucketq.queue.batch import Batch
from bucketq.queue.state import Savepoint, State

_DECIDE: dict[type, Callable[[Batch, Any], Any]] = {
    c.Push: decide_jobs.push,
    c.Claim: decide_jobs.claim,
    c.Complete: decide_claims.complete,
    c.Fail: decide_claims.fail,
    c.Release: decide_claims.release,
    c.Heartbeat: decide_claims.heartbeat,
    c.Transact: decide_claims.transact,
    c.CompleteMany: decide_claims.complete_many,
    c.Get: decide_reads.get,
    c.ListJobs: decide_reads.list_jobs,
    c.Stats: decide_reads.stats,
    c.ListQueues: decide_reads.list_queues,
    c.Settings: decide_reads.settings,
    c.ListGroups: decide_reads.list_groups,
    c.ListSchedules: decide_reads.list_schedules,
    c.Cancel: decide_queues.cancel,
    c.Retry: decide_queues.retry,
    c.Purge: decide_queues.purge,
    c.Pause: decide_queues.pause,
    c.Resume: decide_queues.resume,
    c.Configure: decide_queues.configure,
    c.Subscribe: decide_queues.subscribe,
    c.Unsubscribe: decide_queues.unsubscribe,
    c.PutSchedule: decide_queues.put_schedule,
    c.RemoveSchedule: decide_queues.remove_schedule,
    c.Seal: decide_upkeep.seal,
    c.Drop: decide_upkeep.drop,
    c.Prune: decide_upkeep.prune,
}


class Machine:
    """Decides batches on a state. One batch is open at a time: `begin`, `decide`…, then `settle` or `rollback`."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._start: Savepoint = state.savepoint()
        self._batch = Batch(state, state.now_us, float)

    @property
    def events(self) -> list[e.Event]:
        """What the open batch has decided."""
        return self._batch.events

    @property
    def now_us(self) -> int:
        """The time of the open batch."""
        return self._batch.now_us

    def begin(self, now_us: int, mono_us: int, random: Callable[[], float]) -> None:
        """Open a batch at a moment. Time never goes back: an earlier moment counts as the latest seen."""
        state = self.state
        now_us = max(now_us, state.now_us, state.time_us)
        state.advance(now_us, mono_us)
        self._start = state.savepoint()
        self._batch = Batch(state, now_us, random)

    def decide(self, command: c.Command) -> Any:
        """Decide one command. On an error everything that it did is taken back and the error raised."""
        state = self.state
        batch = self._batch
        undo, events, next_n, next_ending = len(state.undo), len(batch.events), state.next_n, state.next_ending
        try:
            return _DECIDE[type(command)](batch, command)
        except Exception:
            state.rollback(Savepoint(undo, next_n, next_ending))
            del batch.events[events:]
            raise

    def decide_due(self, limit: int = 1_000, leases: bool = True) -> None:
        """Decide what has fallen due by itself, leases last."""
        decide_upkeep.decide_due(self._batch, limit)
        if leases:
            decide_upkeep.decide_leases(self._batch, limit)

    def settle(self) -> None:
        """The batch is durable."""
        self.state.settle()
        self._batch.events = []
        self._start = self.state.savepoint()

    def rollback(self) -> None:
        """The batch never was."""
        self.state.rollback(self._start)
        self._batch.events = []
        self._start = self.state.savepoint()

    def apply(self, events: Iterable[e.Event], now_us: int, mono_us: int) -> None:
        """Apply a commit that somebody else made."""
        self.state.advance(now_us, mono_us)
        for event in events:
            apply(self.state, event, now_us)
        self.settle()
