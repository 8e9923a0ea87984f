"""Which request meets which fault: by script, or by seeded dice. Decides only; `faults.py` does it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import Generic, Literal, TypeVar, get_args

T = TypeVar("T")

Verb = Literal["get", "create", "replace", "list", "delete"]
Verbs = Literal["get", "create", "replace", "list", "delete", "read", "write", "any"]
"""A verb, or several: `read` is get and list, `write` is create and replace, `any` is all five."""
When = Literal["before", "after"]
"""Before or after the store has applied the request."""
ErrorKind = Literal["disk_full", "read_only", "throttled", "stopped"]

WRITES: frozenset[Verb] = frozenset(("create", "replace"))
READS: frozenset[Verb] = frozenset(("get", "list"))
_VERBS: dict[Verbs, frozenset[Verb]] = {
    **{verb: frozenset((verb,)) for verb in get_args(Verb)},
    "read": READS,
    "write": WRITES,
    "any": frozenset(get_args(Verb)),
}


class Fault(Enum):
    """What can happen to one request. "Unknown" is `OutcomeUnknown` for create and replace, and `StoreError` for get,
    list and delete, as the store's contract has it."""

    REPLY_LOST = "reply lost"
    """Applied; the caller is told "unknown"."""
    REQUEST_LOST = "request lost"
    """Not applied; the caller is told "unknown"."""
    LATE = "late"
    """The caller is told "unknown" now; the request is applied later, behind others, and nobody hears how it went."""
    DUPLICATED = "duplicated"
    """Applied twice in a row; the caller gets the second reply: for a write that was done, a false `Conflict`."""
    ERROR = "error"
    """A definite `StoreError`; nothing was applied."""
    UNAVAILABLE = "unavailable"
    """As REQUEST_LOST, but rolled by dice it is an outage: it lasts for several requests."""
    SLOW = "slow"
    """Applied, but it takes its time, before or after. See also `FaultyStore.hold`."""
    CRASH = "crash"
    """The process dies, before or after the request was applied: it and every later one raise `Crash`."""


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault with its particulars."""

    fault: Fault
    when: When = "before"
    error: ErrorKind = "throttled"
    late_after: int | None = None
    slow_s: float = 0.0

    def __post_init__(self) -> None:
        if self.late_after is not None and self.late_after < 1:
            raise ValueError("late_after counts from 1")


@dataclass(slots=True, eq=False)
class _Entry(Generic[T]):
    verbs: frozenset[Verb]
    key: str
    skip: int
    times: int
    what: T

    def matches(self, verb: Verb, key: str) -> bool:
        return verb in self.verbs and fnmatchcase(key, self.key)


class Script(Generic[T]):
    """What awaits the requests to come, in the order in which it was written."""

    def __init__(self) -> None:
        self._entries: list[_Entry[T]] = []

    def add(self, what: T, verbs: Verbs, key: str = "*", skip: int = 0, times: int = 1, first: bool = False) -> None:
        """`what` is for the next `times` requests that match, once `skip` of them have passed."""
        if verbs not in _VERBS:
            raise ValueError(f"no verb {verbs!r}; there are {', '.join(_VERBS)}")
        if times < 1 or skip < 0:
            raise ValueError("times counts from 1, skip from 0")
        self._entries.insert(0 if first else len(self._entries), _Entry(_VERBS[verbs], key, skip, times, what))

    def take(self, verb: Verb, key: str) -> T | None:
        """What this request meets. One thing at most, but it counts as passed for all that it matches."""
        matching = [entry for entry in self._entries if entry.matches(verb, key)]
        due = next((entry for entry in matching if entry.skip == 0), None)
        for entry in matching:
            entry.skip = max(0, entry.skip - 1)
        if due is None:
            return None
        due.times -= 1
        if due.times == 0:
            self._entries.remove(due)
        return due.what

    def clear(self) -> None:
        self._entries.clear()


class Dice:
    """Random faults. The same seed and the same requests give the same faults."""

    def __init__(
        self, seed: int, rates: Mapping[Fault, float], late_after_max: int, outage_max: int, slow_s_max: float
    ) -> None:
        if any(rate < 0 for rate in rates.values()) or sum(rates.values()) > 1 + 1e-9:
            raise ValueError("rates are probabilities, and together at most 1")
        self._random = random.Random(seed)
        self._rates = [(fault, rates[fault]) for fault in Fault if fault in rates]
        self._late_after_max = late_after_max
        self._outage_max = outage_max
        self._outage_left = 0
        self._slow_s_max = slow_s_max

    def roll(self, verb: Verb) -> Strike | None:
        """The fault that this request meets, if any."""
        if self._outage_left:
            self._outage_left -= 1
            return Strike(Fault.UNAVAILABLE)
        fault = self._fault()
        if fault is Fault.UNAVAILABLE:
            self._outage_left = self._random.randrange(self._outage_max)
        return None if fault is None else self._strike(fault, verb)

    def _fault(self) -> Fault | None:
        left = self._random.random()
        for fault, rate in self._rates:
            left -= rate
            if left < 0:
                return fault
        return None

    def _strike(self, fault: Fault, verb: Verb) -> Strike:
        if fault is Fault.LATE:
            return Strike(fault, late_after=self._random.randint(1, self._late_after_max))
        if fault is Fault.SLOW:
            return Strike(fault, self._when(), slow_s=self._random.uniform(0, self._slow_s_max))
        if fault is Fault.CRASH:
            return Strike(fault, self._when())
        if fault is Fault.ERROR and verb in WRITES:
            return Strike(fault, error=self._random.choice(("disk_full", "read_only", "throttled")))
        return Strike(fault)

    def _when(self) -> When:
        return self._random.choice(("before", "after"))
