"""Group commit: commands gather while one write is in flight; when it lands, all its callers are answered.

One task takes turns. A turn decides a batch, makes it durable, answers, and lets the callers run before the next one,
so that they share it. The batch in flight is visible to nobody: reads are decided in the batch like everything else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from contextlib import suppress
from random import Random
from typing import Any

from bucketq.clock import SECOND_US, Clock
from bucketq.commit.calls import Call, Waiting, Wish, weight
from bucketq.commit.upkeep import Upkeep
from bucketq.errors import BucketqError, Conflict, OutcomeUnknown, StateCorrupt, StoreError, StoreStopped
from bucketq.journal.document import Document
from bucketq.journal.inline import Commit, InlineJournal, Landed
from bucketq.queue import commands as c
from bucketq.queue.answers import AwaitArchive, JobInfo, Partial
from bucketq.queue.carry import carry_over
from bucketq.queue.decide_upkeep import BEAT_US
from bucketq.queue.machine import Machine
from bucketq.queue.state import State
from bucketq.settings import Settings
from bucketq.store.base import Store

TAG_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
LOAD_JOB_US = 40
REST_EVERY = 16
CROWD_US = SECOND_US
"""How long a foreign commit is remembered as a sign of contention."""


class Committer:
    """A `Port` that commits by itself, to the store."""

    def __init__(self, store: Store, settings: Settings, clock: Clock, rng: Random) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._rng = rng
        self._writer = f"{rng.getrandbits(64):016x}"
        self._journal = InlineJournal(store, clock, rng.random, settings.conflict_timeout_s)
        self._machine = Machine(State.new("".join(rng.choices(TAG_LETTERS, k=8))))
        self._applied_us = clock.mono_us()
        self._pending: deque[Call] = deque()
        self._waiting = Waiting()
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._hinted = False
        self._stale = False
        self._troubled = False
        self._touched_us = clock.mono_us()
        self._closing = False
        self._dead: BaseException | None = None
        self._crowd: dict[str, int] = {}
        self._write_us = 0
        self._next_write_us = 0
        self._restless_us = 0
        self._room_us = 0
        self._watch: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._upkeep = Upkeep(self, store, settings, clock, rng)

    # -- the port

    async def open(self) -> None:
        """Load what is stored and start taking turns."""
        document = await self._journal.read()
        if document is not None:
            self._load(document)
            if self._leases_over():  # by wall clock; the first claim shall find them
                await self._turn()
        self._upkeep.rest()
        self._task = asyncio.create_task(self._run(), name="bucketq-committer")

    async def call(self, command: c.Command) -> Any:
        return await self._answer_to(Call(command, asyncio.get_running_loop().create_future()))

    async def claim(self, command: c.Claim, wait_s: float) -> list[JobInfo]:
        if wait_s <= 0:
            found: list[JobInfo] = await self.call(command)
            return found
        until_us = self._clock.mono_us() + int(wait_s * SECOND_US)
        call = Call(command, asyncio.get_running_loop().create_future(), until_us)
        answer: Awaitable[list[JobInfo]] = self._answer_to(call)
        try:
            return await answer
        finally:
            self._waiting.remove(call)
            if call.timer is not None:
                call.timer.cancel()

    async def _answer_to(self, call: Call) -> Any:
        future = self.submit(call)
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():  # answered, and cancelled before it could be heard
                self.again(call.releases())
            raise

    async def upkeep(self) -> None:
        self.look_again()
        await self._upkeep.flush()
        await self._upkeep.prune()

    async def close(self) -> None:
        if self._task is None or self._closing:
            return
        self._closing = True
        self._hurry.set()
        for call in self._waiting.take_all():
            call.answer = []
            call.finish()
        with suppress(Exception):
            await self._upkeep.close()
        self.wake()
        await asyncio.wait([self._task])
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch])

    # -- what upkeep asks of it

    @property
    def state(self) -> State:
        """As it is between batches; inside a turn, with the open batch."""
        return self._machine.state

    @property
    def busy(self) -> bool:
        return bool(self._pending)

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def now_us(self) -> int:
        """A commit's time: the wall clock, but never less than has passed since the last commit."""
        elapsed_us = self._clock.mono_us() - self._applied_us
        return max(self._clock.wall_us(), self.state.time_us + elapsed_us, self.state.now_us)

    def submit(self, call: Call) -> asyncio.Future[Any]:
        """Queue a call; its future gets the answer."""
        if self._dead is not None:
            call.fail(BucketqError(f"this client has stopped: {self._dead!r}; connect again"))
        elif self._closing and call.future is not None:
            call.fail(BucketqError("this client is closed; connect again"))
        else:
            self._pending.append(call)
            self.wake()
        assert call.future is not None
        return call.future

    def again(self, calls: list[Call]) -> None:
        """Put calls back to the front, to be decided once more."""
        self._pending.extendleft(reversed(calls))
        self.wake()

    def look_again(self) -> None:
        """Take a turn that begins by reading what is stored."""
        self._hinted = True
        self.wake()

    def wake(self) -> None:
        if not self._wake.is_set():
            self._wake.set()

    # -- turns

    async def _run(self) -> None:
        try:
            while not (self._closing and not self._pending and self._upkeep.closed):
                idle_us = self._clock.mono_us()
                await self._wake.wait()
                self._wake.clear()
                if self._clock.mono_us() - idle_us > self._room_us:
                    self._restless_us = 0
                await self._pace()
                await self._turn()
                await asyncio.sleep(0)  # whoever was answered runs now, and shares the next batch
        except BaseException as error:
            self._die(error)
            if not isinstance(error, Exception):
                raise

    async def _pace(self) -> None:
        """Space writes out if asked to; and let others have their turn when they were seen."""
        wait_us = self._next_write_us - self._clock.mono_us()
        if wait_us <= 0 or self._closing:
            return
        timer = self._clock.call_later(wait_us / SECOND_US, self._hurry.set)
        await self._hurry.wait()
        self._hurry.clear()
        timer.cancel()

    async def _turn(self) -> None:
        calls = self._take()
        due = self._upkeep.take_due()
        await self._stage(calls, due)
        if self._leases_over():
            await self._stage([], due=True, leases=True)
        self._upkeep.rest()
        if self._pending or (self._leases_over() and not self._troubled):  # in trouble the timer tries again, later
            self.wake()

    async def _stage(self, calls: list[Call], due: bool, leases: bool = False) -> None:
        """One batch. Leases are ended in a batch of their own, after that of the callers, whose heartbeats come first,
        and after a look at what is stored: whoever can't reach the store has not seen that they were not renewed."""
        try:
            looked = await self._look(leases)
            await self._commit_batch(calls, due, looked, leases)
        except BucketqError as error:
            self._lose_touch()
            if isinstance(error, StateCorrupt | StoreStopped):
                calls += self._waiting.take_all()
            for call in calls:
                call.fail(error)
            self._upkeep.failed(error)
        except BaseException:
            self.again(calls)  # so that whoever cleans up finds them
            raise

    async def _look(self, anyhow: bool = False) -> bool:
        """Read what is stored if there is reason to think that it is not what is in memory. Whether it was read."""
        if not (self._hinted or self._stale or anyhow):
            return False
        self._hinted = False
        await self._read(anew=self._stale)
        self._stale = False
        return True

    def _leases_over(self) -> bool:
        return self.state.leases.next_us() <= self._clock.mono_us()

    async def _read(self, anew: bool = False) -> bool:
        """Whether something was stored that is not what was in memory; now it is."""
        began_us = self._clock.mono_us()
        document = await self._journal.read(anew)
        if document is not None:
            self._load(document)
        self._in_touch(began_us)
        return document is not None

    def _take(self) -> list[Call]:
        calls: list[Call] = []
        size = 0
        count_max, bytes_max = self._settings.batch_count_max, self._settings.batch_bytes_max
        while self._pending and len(calls) < count_max:
            size += weight(self._pending[0].command)
            if size > bytes_max and calls:
                break
            call = self._pending.popleft()
            if not call.abandoned:
                calls.append(call)
        return calls

    async def _commit_batch(self, calls: list[Call], due: bool, looked: bool, leases: bool) -> None:
        """Decide the calls until a batch of them is durable, or nothing is left to make durable. An answer that changes
        nothing is given on what was read after the call arrived."""
        deadline_us = self._clock.mono_us() + int(self._settings.conflict_timeout_s * SECOND_US)
        while True:
            self._decide(calls, due, leases)
            if not self._machine.events:
                self._machine.rollback()
                if calls and not looked:
                    looked = True
                    if await self._read():
                        continue
                self._answer(calls)
                return
            try:
                landed = await self._write()
            except (StoreError, OutcomeUnknown, Conflict) as error:
                self._give_up(calls, error)
                due = False
                if not calls:
                    return
                looked = await self._look()
                continue
            if landed:
                self._answer(calls)
                return
            looked = True
            if self._clock.mono_us() > deadline_us:
                raise Conflict(f"others kept committing first for {self._settings.conflict_timeout_s:g} s; try again")

    def _give_up(self, calls: list[Call], error: BucketqError) -> None:
        """A write failed: those it was for are told, the others are decided again without them."""
        self._lose_touch()
        self._upkeep.failed(error)
        for call in calls:
            if call.changed:
                call.fail(error)
        calls[:] = [call for call in calls if not call.changed]

    def _lose_touch(self) -> None:
        """The store failed: the open batch never was, and what is stored has to be read before the next."""
        self._machine.rollback()
        self._stale = True
        self._troubled = True

    def _in_touch(self, began_us: int) -> None:
        """The store answered. If it had not for longer than a beat, no lease could be renewed: all start anew."""
        now_us = self._clock.mono_us()
        if now_us - (self._touched_us if self._troubled else began_us) > BEAT_US:
            self.state.advance(self.state.now_us, now_us)
            self.state.leases.rearm()
        self._touched_us = now_us
        self._troubled = False

    def _decide(self, calls: list[Call], due: bool, leases: bool) -> None:
        machine = self._machine
        machine.begin(self.now_us(), self._clock.mono_us(), self._rng.random)
        for call in calls:
            self._decide_one(call)
        self._serve(calls)
        if due or machine.events:
            machine.decide_due(leases=leases)
            self._upkeep.decide(machine)
            self._serve(calls)

    def _decide_one(self, call: Call) -> None:
        events = self._machine.events
        before = len(events)
        call.error = None
        try:
            call.answer = self._machine.decide(call.command)
        except StopIteration as error:  # which no future can carry
            call.error = RuntimeError(repr(error))
        except Exception as error:  # one bad command fails alone
            call.error = error
        call.changed = len(events) > before

    def _serve(self, calls: list[Call]) -> None:
        """Claims that wait are decided in the batch that frees a job for them, those of this very batch last."""
        stirred = self.state.stirred
        patient = [call for call in calls if call.until_us]
        while stirred and (self._waiting or patient):
            wishes = self._waiting.wishes_for(stirred)
            stirred.clear()
            for wish in wishes:
                self._serve_wish(wish, calls)
            for call in patient:
                if call.error is None and not call.answer:
                    self._decide_one(call)
        stirred.clear()

    def _serve_wish(self, wish: Wish, calls: list[Call]) -> None:
        while (call := self._waiting.first(wish)) is not None:
            self._decide_one(call)
            if call.error is None and not call.answer:
                return
            self._waiting.remove(call)
            calls.append(call)

    async def _write(self) -> bool:
        """Whether the open batch is durable; if others were first it is undone and theirs is loaded."""
        machine, state = self._machine, self.state
        commit = Commit(self._writer, f"{self._rng.getrandbits(64):016x}", state.seq + 1)
        state.put_stamp(commit.seq, machine.now_us, state.epoch, commit.writer, commit.nonce)
        data = self._journal.encode(state, commit)
        began_us = self._clock.mono_us()
        outcome = await self._journal.commit(data, commit)
        self._write_us = self._clock.mono_us() - began_us
        if not isinstance(outcome, Landed):
            machine.rollback()
            self._load(outcome.document)
            self._in_touch(began_us)
            return False
        self._upkeep.landed(machine.events)
        machine.settle()
        self._applied_us = began_us
        self._set_pace(began_us)
        if outcome.newer is not None:
            self._load(outcome.newer)
        self._in_touch(began_us)
        return True

    def _set_pace(self, began_us: int) -> None:
        now_us = self._clock.mono_us()
        self._next_write_us = began_us + int(self._settings.commit_interval_s * SECOND_US)
        self._crowd = {writer: seen for writer, seen in self._crowd.items() if now_us - seen < CROWD_US}
        self._leave_room(now_us)
        if self._crowd:
            courtesy_us = int(self._rng.random() * len(self._crowd) * self._write_us)
            self._next_write_us = max(self._next_write_us, now_us + courtesy_us)

    def _leave_room(self, now_us: int) -> None:
        """Whoever wins every race never sees the losers, who need longer: to read, load and write. So now and then a
        writer that never rests leaves them the time."""
        self._room_us = 2 * self._write_us + LOAD_JOB_US * len(self.state.jobs)
        self._restless_us += self._write_us
        if not self._crowd and self._restless_us > REST_EVERY * self._room_us:
            self._next_write_us = max(self._next_write_us, now_us + int(self._room_us * (1 + self._rng.random())))
            self._restless_us = 0

    def _load(self, document: Document) -> None:
        """Take over what others committed. The turn of keys and the watch over leases go on."""
        old = self.state
        mono_us = self._clock.mono_us()
        now_us = self.now_us()
        try:
            state = State.load(document.snapshot(), mono_us, now_us)
        except (KeyError, ValueError, IndexError) as error:
            raise StateCorrupt("queue.json", f"contradicts itself: {error!r}") from error
        carry_over(old, state, int(self._settings.clock_skew_max_s * SECOND_US), self._rng.random())
        self._machine = Machine(state)
        self._applied_us = mono_us
        self._journal.remember(state)
        if document.head.writer != self._writer:
            self._crowd[document.head.writer] = mono_us
        self._upkeep.loaded()

    def _answer(self, calls: list[Call]) -> None:
        now_us = self._clock.mono_us()
        for call in calls:
            answer = call.answer
            if call.error is not None:
                call.finish()
            elif isinstance(answer, Partial):
                call.command = answer.rest
                self._pending.appendleft(call)
            elif isinstance(answer, AwaitArchive):
                self._upkeep.park(call)
            elif answer == [] and call.until_us > now_us and not self._closing and not call.abandoned:
                self._wait(call)
            else:
                if call.abandoned:
                    self._pending.extend(call.releases())
                call.finish()

    # -- waiting

    def _wait(self, call: Call) -> None:
        self._waiting.add(call)
        if call.timer is None:
            wait_us = call.until_us - self._clock.mono_us()
            call.timer = self._clock.call_later(wait_us / SECOND_US, lambda: self._time_out(call))
        if self._watch is None:
            self._watch = asyncio.create_task(self._watch_store(), name="bucketq-watch")
        elif self._hinted:
            self.wake()

    async def _watch_store(self) -> None:
        """Hints that others committed. What came before the watch began is looked for once."""
        while True:
            changed = asyncio.ensure_future(self._store.changed())
            try:
                await asyncio.sleep(0)
                self._hint()
                await changed
                while True:
                    self._hint()
                    await self._store.changed()
            except StoreError:
                await self._clock.sleep(1.0)
            finally:
                changed.cancel()

    def _hint(self) -> None:
        self._hinted = True
        if self._waiting:
            self.wake()

    def _time_out(self, call: Call) -> None:
        if self._waiting.remove(call):
            call.answer, call.error = [], None
            call.finish()

    def _die(self, error: BaseException) -> None:
        self._dead = error
        told = error if isinstance(error, Exception) else BucketqError(f"the committer was stopped: {error!r}")
        for call in (*self._pending, *self._waiting.take_all()):
            call.fail(told)
        self._pending.clear()
        self._upkeep.die(told)
        if self._watch is not None:
            self._watch.cancel()
