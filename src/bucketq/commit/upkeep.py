"""Upkeep without a broker: any process does what is due, after a random delay, if it is still due.

Expiry, ticks and the like are decided in a batch; this is about when. Sealing, writing and dropping segments are about
who waits for whom.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from random import Random
from sys import maxsize
from typing import TYPE_CHECKING

from bucketq.clock import SECOND_US, Clock, Timer
from bucketq.commit.archivist import SEAL_AGE_US, SEAL_BYTES, SEAL_ENDINGS, Archivist
from bucketq.commit.calls import Call
from bucketq.errors import BucketqError
from bucketq.journal.archive import Ending, endings_of
from bucketq.journal.layout import segment_folder
from bucketq.queue import commands as c
from bucketq.queue import events as e
from bucketq.queue.machine import Machine
from bucketq.queue.rows import Segment
from bucketq.settings import Settings
from bucketq.store.base import Store

if TYPE_CHECKING:
    from bucketq.commit.committer import Committer

JITTER_S = 0.25
LOOK_EVERY_US = 60 * SECOND_US
ADOPT_MIN_S = 0.5
ADOPT_MAX_S = 2.0
FAILED_PAUSE_S = 1.0
PRUNE_EVERY_US = 3_600 * SECOND_US


class Upkeep:
    """When things are due, and how segments get from sealed to dropped."""

    def __init__(self, owner: Committer, store: Store, settings: Settings, clock: Clock, rng: Random) -> None:
        self._owner = owner
        self._settings = settings
        self._clock = clock
        self._rng = rng
        self._archivist = Archivist(store, clock, rng.random)
        self._seal_bytes = min(SEAL_BYTES, max(1, settings.inline_bytes_max // 4))
        self._due = False
        self._timer: Timer | None = None
        self._timer_for = (maxsize, maxsize)
        self._not_before_us = 0
        self._parked: list[tuple[Call, int]] = []
        self._flushes: list[tuple[asyncio.Future[None], int | None]] = []
        self._ended_here = False
        self._archiving: asyncio.Task[None] | None = None
        self._adopting: tuple[int, Timer] | None = None
        self._retry: Timer | None = None
        self._dead: Exception | None = None
        self._closing = False
        self._sealed_here = 0
        self._written = 0
        self._prune_at_us = clock.mono_us() + int(rng.random() * 60 * SECOND_US)
        self._pruning: asyncio.Task[None] | None = None
        self.closed = False

    # -- in a turn

    def take_due(self) -> bool:
        due, self._due = self._due or self._wants_seal, False
        return due

    def decide(self, machine: Machine) -> None:
        """The archive's part of a batch: drop what is written, then seal what is due."""
        segment = machine.state.segment
        if segment is not None and segment.k == self._written:
            machine.decide(c.Drop(segment.k))
        if machine.state.segment is None and self._seal_due(machine):
            folder = segment_folder(machine.now_us)
            machine.decide(c.Seal(folder, SEAL_ENDINGS, SEAL_BYTES))

    def _seal_due(self, machine: Machine) -> bool:
        state = machine.state
        count = state.next_ending - 1 - state.sealed_last
        if not count:
            return False
        if count >= SEAL_ENDINGS or state.unsealed_bytes >= self._seal_bytes or self._wants_seal:
            return True
        return machine.now_us >= self._seal_at_us()

    def _seal_at_us(self) -> int:
        """When the oldest ending that is not sealed has waited long enough."""
        state = self._owner.state
        if state.segment is not None or state.sealed_last + 1 >= state.next_ending:
            return maxsize
        n, line = state.endings[state.sealed_last + 1]
        return line.runs[n].finished_us + SEAL_AGE_US

    def landed(self, events: Iterable[e.Event]) -> None:
        """A batch of ours is durable."""
        for event in events:
            kind = type(event)
            if kind is e.Ended:
                self._ended_here = True
            elif kind is e.Sealed:
                self._sealed_here = self._owner.state.segment.k if self._owner.state.segment else 0
        self._not_before_us = 0

    def loaded(self) -> None:
        """Others committed: what was timed before is timed anew."""
        self._timer_for = (maxsize, maxsize)

    def failed(self, error: Exception) -> None:
        """Nothing could be done now: whoever waits for the archive is told, and upkeep pauses for a while."""
        self._not_before_us = self._clock.mono_us() + int(FAILED_PAUSE_S * SECOND_US)
        self._timer_for = (maxsize, maxsize)
        if self._retry is None and not self.closed:
            self._retry = self._clock.call_later(FAILED_PAUSE_S, self._try_again)
        flushes, self._flushes = self._flushes, []
        for flush, _ in flushes:
            if not flush.done():
                flush.set_exception(error)
        parked, self._parked = self._parked, []
        for call, _ in parked:
            call.fail(error)

    @property
    def _wants_seal(self) -> bool:
        """Whether somebody waits for an ending to be archived that is not even sealed."""
        sealed_last = self._owner.state.sealed_last
        goals = (*(goal for _, goal in self._parked), *(goal for _, goal in self._flushes if goal is not None))
        return any(goal > sealed_last for goal in goals)

    def die(self, error: Exception) -> None:
        """Nothing will be done any more."""
        self._dead = error
        self.closed = True
        self.failed(error)
        self._cancel_timers()

    def park(self, call: Call) -> None:
        """A call has to wait until what has ended by now is archived."""
        self._parked.append((call, self._owner.state.next_ending - 1))
        self._due = True
        self._owner.wake()

    # -- between turns

    def rest(self) -> None:
        """After a turn: go on with the segment under way, tell who waited, and set the timer."""
        self._go_on()
        self._prune_in_time()
        self._release_parked()
        self._end_flushes()
        if self._wants_seal and self._owner.state.segment is None:
            self._due = True
            self._owner.wake()
        self._set_timer()

    def _archived_last(self) -> int:
        """The number of the last ending that is in the archive, and marked as such."""
        state = self._owner.state
        return state.segment.first - 1 if state.segment is not None else state.sealed_last

    def _release_parked(self) -> None:
        archived_last = self._archived_last()
        ready = [call for call, goal in self._parked if goal <= archived_last]
        if ready:
            self._parked = [(call, goal) for call, goal in self._parked if goal > archived_last]
            self._owner.again(ready)

    def _end_flushes(self) -> None:
        """A flush is over when nothing is due and what had ended when it began is archived. Others may go on working,
        so its goal is fixed at its first turn; at a close only once everybody is answered, and for what ended here."""
        if not self._flushes or (self._closing and (self._owner.busy or self._parked)):
            return
        state = self._owner.state
        if state.next_due_us() <= self._owner.now_us() and not self._closing:
            self._due = True
            self._owner.wake()
            return
        goal = state.next_ending - 1 if self._ended_here or not self._closing else 0
        self._flushes = [(flush, goal if old is None else old) for flush, old in self._flushes]
        archived_last = self._archived_last()
        for entry in list(self._flushes):
            if entry[1] is not None and entry[1] <= archived_last:
                self._flushes.remove(entry)
                if not entry[0].done():
                    entry[0].set_result(None)

    def _go_on(self) -> None:
        """Write the sealed segment: at once if it was sealed here or somebody waits, else after a while, if it is still
        there."""
        segment = self._owner.state.segment
        if segment is None or self._archiving is not None:
            return
        if segment.k == self._written:
            self._due = True
            self._owner.wake()
        elif segment.k == self._sealed_here or self._parked or self._flushes:
            state = self._owner.state
            work = self._archive(state.tag, segment, endings_of(state, segment))
            self._archiving = asyncio.create_task(work, name="bucketq-archive")
        elif self._adopting is None or self._adopting[0] != segment.k:
            if self._adopting is not None:
                self._adopting[1].cancel()
            delay_s = ADOPT_MIN_S + self._rng.random() * (ADOPT_MAX_S - ADOPT_MIN_S)
            self._adopting = (segment.k, self._clock.call_later(delay_s, lambda: self._adopt(segment.k)))

    def _try_again(self) -> None:
        """A while after a failure: take a turn, to see what claims that wait have missed and go on with the segment.
        (Not here: in the middle of a turn the state has a batch that may never be.)"""
        self._retry = None
        if self._owner.has_waiting:
            self._owner.look_again()
        self._owner.wake()

    def _adopt(self, k: int) -> None:
        """Whoever sealed it may be gone: if it is still there when we look, it is ours to write."""
        self._sealed_here = k
        self._adopting = None
        self._owner.look_again()

    async def _archive(self, tag: str, segment: Segment, endings: list[Ending]) -> None:
        try:
            await self._archivist.write(tag, segment, endings)
            self._written = segment.k
            self._due = True
            self._owner.wake()
        except Exception as error:
            self.failed(error)
        finally:
            self._archiving = None

    def _set_timer(self) -> None:
        """One timer, for the earliest of what will be due. A target keeps its delay until it changes."""
        state = self._owner.state
        target = (self._due_at_us(), state.leases.next_us())
        if target == self._timer_for or self.closed:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_for = target
        delay_us = min(target[0] - self._owner.now_us(), target[1] - self._clock.mono_us())
        if delay_us > 10 * 365 * 86_400 * SECOND_US:
            return
        delay_us = min(delay_us, LOOK_EVERY_US)  # a clock may jump, or the machine sleep
        delay_us = max(delay_us, self._not_before_us - self._clock.mono_us(), 0)
        jitter_s = 0.0 if target[0] == self._wake_at_us() else self._rng.random() * JITTER_S
        self._timer = self._clock.call_later(delay_us / SECOND_US + jitter_s, self._on_time)

    def _wake_at_us(self) -> int:
        return self._owner.state.next_wake_us() if self._owner.has_waiting else maxsize

    def _due_at_us(self) -> int:
        return min(self._owner.state.next_due_us(), self._wake_at_us(), self._seal_at_us())

    def _on_time(self) -> None:
        self._timer = None
        self._timer_for = (maxsize, maxsize)
        self._due = True
        self._owner.wake()

    # -- by hand

    async def flush(self) -> None:
        """Do all that is due, seal everything that has ended, and wait until it is in the archive."""
        if self._dead is not None:
            raise self._dead
        flush: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._flushes.append((flush, None))
        self._due = True
        self._owner.wake()
        await flush

    async def prune(self) -> None:
        """Delete segments past the retention. What is left is recorded first."""
        retention_s = self._settings.archive_retention_s
        if retention_s is None:
            return
        before_us = self._owner.now_us() - int(retention_s * SECOND_US)
        old = await self._archivist.past_retention(before_us)
        if old:
            await self._owner.call(c.Prune(max(k for k, _ in old) + 1))
            await self._archivist.delete([key for _, key in old])

    def _prune_in_time(self) -> None:
        """Once an hour, without anybody asking."""
        now_us = self._clock.mono_us()
        if self._settings.archive_retention_s is None or now_us < self._prune_at_us or self.closed:
            return
        self._prune_at_us = now_us + PRUNE_EVERY_US
        self._pruning = asyncio.create_task(self._prune_quietly(), name="bucketq-prune")

    async def _prune_quietly(self) -> None:
        with suppress(BucketqError):  # an hour later it is tried again
            await self.prune()

    async def close(self) -> None:
        """At a clean close everybody is answered, and what ended here is archived."""
        self._closing = True
        try:
            await self.flush()
        finally:
            self.closed = True
            self._cancel_timers()
            for task in (self._archiving, self._pruning):
                if task is not None:
                    await asyncio.wait([task])

    def _cancel_timers(self) -> None:
        for timer in (self._timer, self._retry, self._adopting[1] if self._adopting else None):
            if timer is not None:
                timer.cancel()
