"""The queue's rules, written a second time and as plainly as possible: docs/semantics.md as a program.

Where the rules leave a choice (the key whose turn it is, the order in which several jobs end in one command), the
reference is shown what the machine wrote, checks that it was allowed, and follows it. All else it decides alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from bucketq import errors
from bucketq.queue import commands as c
from bucketq.queue import events as e
from tests.queue.model.claims import ClaimCommands
from tests.queue.model.jobs import JobCommands
from tests.queue.model.queues import QueueCommands
from tests.queue.model.runs import Seen
from tests.queue.model.tables import Ending
from tests.queue.model.turns import Turns
from tests.queue.model.upkeep import UpkeepCommands


class Reference(ClaimCommands, JobCommands, QueueCommands, UpkeepCommands):
    """Decides commands like the machine, slowly. `random` is shared in kind, not in fact: same numbers, same order.
    The method for a command has its name: `_push` decides Push."""

    def __init__(self, random: Callable[[], float], tag: str = "t") -> None:
        super().__init__(tag)
        self.random = random
        self.turns = Turns()

    def decide(self, command: c.Command, seen: Seen) -> Any:
        """The answer to a command, or its error, with everything as it was."""
        before = self.copy()
        try:
            answer = getattr(self, "_" + type(command).__name__.lower())(command, seen)
        except errors.BucketqError:
            self.restore(before)
            raise
        self._follow_endings(before["next_ending"], seen)
        if isinstance(command, c.Configure):
            self.turns.forget()  # the lines may be drawn up anew
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
