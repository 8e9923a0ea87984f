"""Fairness: between two claims from one key, every other key that could have been claimed all along is served."""

from __future__ import annotations

from tests.queue.model import line
from tests.queue.model.tables import Tables

Key = str | None
Lane = tuple[str, str, int]
"""Queue, group and priority: within these the keys take turns."""


class Turns:
    """For each key that was served: who has been claimable since, and waits for its turn."""

    def __init__(self) -> None:
        self.owed: dict[tuple[Lane, Key], set[Key]] = {}

    def forget(self) -> None:
        """The hint in memory may be gone: nobody owes anything."""
        self.owed.clear()

    def serve(self, tables: Tables, n: int, group: str) -> None:
        """Job `n` is about to be claimed."""
        job = tables.jobs[n]
        lane = (job.queue, group, job.priority)
        owed = self.owed.get((lane, job.key))
        assert not owed, f"key {job.key!r} comes again before {owed}"
        for ((queue, of, _), _), keys in self.owed.items():
            if (queue, of) == (job.queue, group):  # at whichever priority: it had its turn
                keys.discard(job.key)
        self.owed[lane, job.key] = _waiting_keys(tables, lane) - {job.key}

    def look(self, tables: Tables) -> None:
        """Something changed: a key that has nothing claimable now loses its turn."""
        lanes = {lane: _waiting_keys(tables, lane) for lane in {lane for lane, _ in self.owed}}
        self.owed = {(lane, key): keys & lanes[lane] for (lane, key), keys in self.owed.items() if keys}


def _waiting_keys(tables: Tables, lane: Lane) -> set[Key]:
    """The keys whose best job is of this priority: one that had a better job meanwhile may have lost its turn."""
    queue, group, priority = lane
    if line.is_closed(tables, queue, group):
        return set()
    best: dict[Key, int] = {}
    for job, _ in line.claimable(tables, queue, group):
        if not tables.is_past_ttl(job.n):
            best[job.key] = min(best.get(job.key, job.priority), job.priority)
    return {key for key, found in best.items() if found == priority}
