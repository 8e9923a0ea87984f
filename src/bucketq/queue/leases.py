"""Which leases are running, and when each will have been seen unrenewed for its whole length.

This is what one process has watched on its own monotonic clock; it is not part of the state.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from sys import maxsize
from typing import NamedTuple

from bucketq.queue.line import Line
from bucketq.queue.rows import Run

SLACK = 10_000


class Over(NamedTuple):
    """A lease that is over: its deadline, its line's serial, its job's number."""

    deadline_us: int
    serial: int
    n: int


class Leases:
    """A heap of deadlines; `line.leases` has the current one of each running job."""

    def __init__(self, lines: dict[int, Line], mono_us: int) -> None:
        self.mono_us = mono_us
        self._lines = lines
        self._heap: list[tuple[int, int, int]] = []
        self._trim_at = SLACK
        self._looked_us = mono_us

    def arm(self, line: Line, n: int, run: Run) -> None:
        """Start watching: the full length from now."""
        self.arm_until(line, n, self.mono_us + run.lease_ms * 1_000)

    def arm_until(self, line: Line, n: int, deadline_us: int) -> None:
        """Watch a running job's lease until a deadline. The heap always has an entry for the current one."""
        line.leases[n] = deadline_us
        heappush(self._heap, (deadline_us, line.serial, n))
        if len(self._heap) > self._trim_at:
            self._trim()

    def _trim(self) -> None:
        """Forget the entries of leases that ended before their time: O(1) per claim, over time."""
        self._heap = [(end, line.serial, n) for line in self._lines.values() for n, end in line.leases.items()]
        heapify(self._heap)
        self._trim_at = 2 * len(self._heap) + SLACK

    def next_us(self) -> int:
        """The earliest moment at which a lease may be over."""
        heap = self._heap
        while heap:
            deadline_us, serial, n = heap[0]
            line = self._lines.get(serial)
            current_us = line.leases.get(n) if line is not None else None
            if current_us == deadline_us:
                return deadline_us
            heappop(heap)
        return maxsize

    def over(self, limit: int) -> list[Over]:
        """Up to `limit` leases that are over by now, earliest first. They stay until the rows change."""
        found: list[tuple[int, int, int]] = []
        while len(found) < limit and self.next_us() <= self.mono_us:
            found.append(heappop(self._heap))
        for entry in found:
            heappush(self._heap, entry)
        return [Over(*entry) for entry in dict.fromkeys(found)]

    def look(self, beat_us: int) -> bool:
        """Whether this process has been looking. If it comes more than a beat after a lease was over, and after its
        last look, it was not: it stalled, or could not reach the store."""
        since_us = max(self.next_us(), self._looked_us)
        self._looked_us = self.mono_us
        return self.mono_us - since_us <= beat_us

    def rearm(self) -> None:
        """Give every lease its full length again: this process was not looking."""
        for line in self._lines.values():
            for n in line.leases:
                line.leases[n] = self.mono_us + line.runs[n].lease_ms * 1_000
        self._trim()
