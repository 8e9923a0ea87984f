"""A queue in memory: its row, its lines, and the numbers of its jobs."""

from __future__ import annotations

from sys import maxsize

from bucketq.queue.line import Line
from bucketq.queue.rows import NAMELESS, QueueRow


class QueueIndex:
    """A queue: its row, its lines, and the numbers of its jobs in order (`roster`, which may name some that left)."""

    __slots__ = ("gone", "lines", "roster", "row", "taking")

    def __init__(self, row: QueueRow) -> None:
        self.row = row
        self.lines: dict[str, Line] = {}
        self.taking: tuple[Line, ...] = ()
        self.roster: list[int] = []
        self.gone = 0

    @property
    def groups(self) -> list[Line]:
        """The lines of the groups that somebody subscribed, if any."""
        return [line for line in self.lines.values() if line.name != NAMELESS]

    def seen_by(self, n: int) -> list[Line]:
        """The lines that a job belongs to: groups from their start on, the nameless one if there is no such group
        or if it has a row of it."""
        seen = [line for line in self.lines.values() if line.name != NAMELESS and line.group.since <= n]
        nameless = self.lines[NAMELESS]
        if not seen or n in nameless.runs:
            seen.append(nameless)
        return seen

    def tune(self) -> None:
        """Give each line the queue's settings; the nameless one is closed while there are groups."""
        groups = self.groups
        self.taking = tuple(groups) or (self.lines[NAMELESS],)
        row = self.row
        for line in self.lines.values():
            line.closed = bool(groups) if line.name == NAMELESS else line.group.leaving
            line.paused = row.paused
            line.ordered = row.ordered
            line.max_running = maxsize if row.max_running is None else row.max_running
            line.per_key = maxsize if row.max_running_per_key is None else row.max_running_per_key
            line.rate_per_hour = row.rate_per_hour
