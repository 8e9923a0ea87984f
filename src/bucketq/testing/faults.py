"""A store that fails on purpose."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from bucketq.clock import Clock
from bucketq.errors import BucketqError
from bucketq.store.base import Object, Store, Version
from bucketq.testing.plan import READS, Dice, ErrorKind, Fault, Script, Strike, Verbs, When
from bucketq.testing.request import Call, Crash, Held, Request, outcome_of

T = TypeVar("T")

Damage = Literal["truncate", "flip", "empty", "garbage"]


class FaultyStore:
    """A store around `store` whose requests meet faults: those written down by `next`, `hold` and `crash_at`, and
    random ones if made by `FaultyStore.random`. What is applied stays in `store`: whoever opens that next, finds
    what has survived.

    `calls` counts the requests by verb, `fired` the faults, and `log` has each request in order of arrival. `changed`
    meets no faults and is not counted. `clock` is for `Fault.SLOW`; without one it takes turns of the event loop.
    """

    def __init__(self, store: Store, *, clock: Clock | None = None) -> None:
        self.inner = store
        self.calls: Counter[str] = Counter()
        self.fired: Counter[Fault] = Counter()
        self.log: list[Call] = []
        self.crashed = False
        self._clock = clock
        self._script: Script[Strike] = Script()
        self._holds: Script[Held] = Script()
        self._dice: Dice | None = None
        self._late: list[_Late] = []

    @classmethod
    def random(
        cls,
        store: Store,
        seed: int,
        rates: Mapping[Fault, float],
        *,
        clock: Clock | None = None,
        late_after_max: int = 8,
        outage_max: int = 8,
        slow_s_max: float = 30.0,
    ) -> FaultyStore:
        """Each request meets each fault with its probability in `rates`; the same seed and requests give the same
        faults. A late request is applied before one of the `late_after_max` next ones, an outage is of up to
        `outage_max` requests, a slow request takes up to `slow_s_max` seconds."""
        faulty = cls(store, clock=clock)
        faulty._dice = Dice(seed, rates, late_after_max, outage_max, slow_s_max)
        return faulty

    def next(
        self,
        verb: Verbs,
        fault: Fault,
        *,
        key: str = "*",
        times: int = 1,
        skip: int = 0,
        when: When = "before",
        error: ErrorKind = "throttled",
        late_after: int | None = None,
        slow_s: float = 1.0,
    ) -> None:
        """The next `times` requests of `verb` whose key is like `key` (`queue.json`, `log/*`) meet `fault`, once `skip`
        of them have passed. `when` is for CRASH and SLOW, `error` for ERROR, `slow_s` for SLOW. A LATE request is
        applied before the `late_after`-th request that follows it; by default only by `deliver_late`."""
        self._script.add(Strike(fault, when, error, late_after, slow_s), verb, key, skip, times)

    def hold(self, verb: Verbs, *, key: str = "*", skip: int = 0, when: When = "before") -> Held:
        """Stop one such request, before or after it is applied, until the test releases it. It may meet a fault as
        well; one that is never applied never stops `after`."""
        held = Held(when)
        self._holds.add(held, verb, key, skip)
        return held

    def crash_at(self, n: int, when: When = "before") -> None:
        """The process dies at its `n`-th request from now (1 is the next). A test tries every point at which it can
        die by n = 1, 2, … until `crashed` is still False at the end."""
        self._script.add(Strike(Fault.CRASH, when), "any", skip=n - 1, first=True)

    def crash(self) -> None:
        """The process dies now: requests in flight raise `Crash` when they return, later ones at once."""
        self.crashed = True

    def heal(self) -> None:
        """No more faults: forgets script, holds and dice. Late requests stay under way, and the dead dead."""
        self._script.clear()
        self._holds.clear()
        self._dice = None

    @property
    def late(self) -> int:
        """How many late requests are under way."""
        return len(self._late)

    async def deliver_late(self) -> int:
        """Apply the late requests that are under way, oldest first, a crashed process's too; how many it were."""
        late, self._late = self._late, []
        for each in late:
            await each.request.send_unheard()
        return len(late)

    async def corrupt(self, key: str, how: Damage, at: int | None = None) -> None:
        """Damage a stored object: cut it off at byte `at`, or flip a bit of that byte (by default in the middle),
        empty it, or put garbage in its place. `LookupError` if there is none."""
        found = await self.inner.get(key)
        if found is None:
            raise LookupError(f"there is no {key} to damage")
        damaged = _damaged(found.data, how, len(found.data) // 2 if at is None else at)
        if damaged == found.data:
            raise ValueError(f"{how} leaves {key} as it is")
        await self.inner.replace(key, damaged, found.version)

    async def get(self, key: str) -> Object | None:
        return await self._request(Call("get", key, 0), lambda: self.inner.get(key))

    async def create(self, key: str, data: bytes) -> Version:
        return await self._request(Call("create", key, len(data)), lambda: self.inner.create(key, data))

    async def replace(self, key: str, data: bytes, version: Version) -> Version:
        return await self._request(Call("replace", key, len(data)), lambda: self.inner.replace(key, data, version))

    async def list(self, prefix: str, after: str = "") -> AsyncIterator[str]:
        """One request, whose keys are all read before the first is given out."""

        async def keys() -> tuple[str, ...]:
            return tuple([key async for key in self.inner.list(prefix, after)])

        for key in await self._request(Call("list", prefix, 0), keys):
            self._check_alive()
            yield key

    async def delete(self, key: str) -> None:
        await self._request(Call("delete", key, 0), lambda: self.inner.delete(key))

    async def changed(self) -> None:
        self._check_alive()
        await self.inner.changed()
        self._check_alive()

    async def close(self) -> None:
        """Close the inner store too, unless crashed: the dead close nothing."""
        if not self.crashed:
            await self.inner.close()

    async def _request(self, call: Call, apply: Callable[[], Awaitable[T]]) -> T:
        self._check_alive()
        self.calls[call.verb] += 1
        self.log.append(call)
        strike = self._strike(call)
        request = Request(call, apply, self._hold(call))
        try:
            await self._deliver_due()
            answer = await self._answer(request, strike)
        except BaseException as error:
            call.outcome = "crash" if self.crashed else outcome_of(error)
            if isinstance(error, BucketqError):
                self._check_alive()
            raise
        call.outcome = "crash" if self.crashed else "ok"
        self._check_alive()
        return answer

    def _strike(self, call: Call) -> Strike | None:
        strike = self._script.take(call.verb, call.key)
        if strike is None and self._dice is not None:
            strike = self._dice.roll(call.verb)
        if strike is not None:
            call.fault = strike.fault
            self.fired[strike.fault] += 1
        return strike

    def _hold(self, call: Call) -> Held | None:
        held = self._holds.take(call.verb, call.key)
        if held is not None:
            call.fault = call.fault or Fault.SLOW
            self.fired[Fault.SLOW] += 1
        return held

    async def _answer(self, request: Request[T], strike: Strike | None) -> T:
        await request.arrive()
        self._check_alive()
        if strike is None:
            return await request.send()
        match strike.fault:
            case Fault.ERROR:
                raise request.refused(strike.error)
            case Fault.REQUEST_LOST | Fault.UNAVAILABLE:
                raise request.no_reply()
            case Fault.REPLY_LOST:
                await request.send_unheard()
                raise request.no_reply()
            case Fault.LATE:
                if request.call.verb not in READS:
                    self._late.append(_Late(request, strike.late_after))
                raise request.no_reply()
            case Fault.DUPLICATED:
                await request.send_unheard()
                return await request.send()
            case Fault.SLOW:
                return await self._slowly(request, strike)
            case Fault.CRASH:
                if strike.when == "after":
                    await request.send_unheard()
                self.crash()
                raise Crash(f"{strike.when} {request.call.verb} {request.call.key}")

    async def _slowly(self, request: Request[T], strike: Strike) -> T:
        if strike.when == "before":
            await self._pause(strike.slow_s)
            self._check_alive()
            return await request.send()
        try:
            answer = await request.send()
        except BucketqError:
            await self._pause(strike.slow_s)
            raise
        await self._pause(strike.slow_s)
        return answer

    async def _pause(self, seconds: float) -> None:
        if self._clock is not None:
            await self._clock.sleep(seconds)
        else:
            for _ in range(1 + round(seconds)):
                await asyncio.sleep(0)

    async def _deliver_due(self) -> None:
        due = [each for each in self._late if each.comes_now()]
        self._late = [each for each in self._late if each not in due]
        for each in due:
            await each.request.send_unheard()

    def _check_alive(self) -> None:
        if self.crashed:
            raise Crash("the process is dead")


@dataclass(slots=True, eq=False)
class _Late:
    request: Request[object]
    after: int | None

    def comes_now(self) -> bool:
        """Asked once at every later request: it counts them."""
        if self.after is not None:
            self.after -= 1
        return self.after == 0


def _damaged(data: bytes, how: Damage, at: int) -> bytes:
    match how:
        case "truncate":
            return data[:at]
        case "flip":
            return data[:at] + bytes(byte ^ 1 for byte in data[at : at + 1]) + data[at + 1 :]
        case "empty":
            return b""
        case "garbage":
            return b"\x00\xffnot what was written\xfe"
