"""A line: the jobs of one queue as one group sees them, indexed so that a claim finds its job at O(log n).

Each key has a lane, a heap of the jobs that could be claimed by order; a lane stands in the ring of its best priority
exactly while it has something claimable, so no claim walks past blocked keys. Everything here follows from the rows:
`swap` moves one job from its old row to its new one, and undoing is swapping back.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from heapq import heappop, heappush
from sys import maxsize
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from bucketq.queue.heaps import compact, drop_stale_top
from bucketq.queue.rows import GroupRow, Job, Run

if TYPE_CHECKING:
    from bucketq.queue.state import State

PLACE_BITS: Final = 48
PLACE_MASK: Final = (1 << PLACE_BITS) - 1


class Absent:
    """Stands for the run of a job that a group does not see."""


ABSENT: Final = Absent()
MaybeRun = Run | None | Absent
"""A row, None for a job that waits untouched since its push, or ABSENT."""


def is_waiting(run: MaybeRun) -> TypeGuard[Run | None]:
    return run is None or (run is not ABSENT and run.status == "waiting")  # type: ignore[union-attr]


_NONE_STALE: Final[set[int]] = set()
"""Shared by the lanes that never had one, and never changed: a set of its own would be most of a lane's memory."""


class Lane:
    """The jobs of one key. `at` is the priority of the ring it stands in, None while nothing in it can be claimed."""

    __slots__ = ("at", "heap", "key", "running", "stale")

    def __init__(self, key: str | None) -> None:
        self.key = key
        self.heap: list[int] = []
        self.stale = _NONE_STALE
        self.running = 0
        self.at: int | None = None

    def push(self, order: int) -> None:
        if self.stale and order in self.stale:
            self.stale.discard(order)
        else:
            heappush(self.heap, order)

    def remove(self, order: int) -> None:
        heap = self.heap
        if heap[0] == order:
            heappop(heap)
            if self.stale:
                drop_stale_top(heap, self.stale)
            return
        if self.stale is _NONE_STALE:
            self.stale = set()
        self.stale.add(order)
        compact(heap, self.stale)


class Line:
    """Indices of one (queue, group). `serial` is its number in this process's memory."""

    __slots__ = (
        "_prios",
        "_prios_known",
        "closed",
        "dead",
        "group",
        "lanes",
        "leases",
        "listed",
        "max_running",
        "name",
        "oldest",
        "ordered",
        "paused",
        "per_key",
        "places",
        "queue",
        "rate_per_hour",
        "ready",
        "rings",
        "runs",
        "scheduled",
        "serial",
        "state",
        "throttled",
        "unsealed",
    )

    def __init__(self, state: State, serial: int, row: GroupRow) -> None:
        self.state = state
        self.serial = serial
        self.queue = row.queue
        self.name = row.name
        self.group = row
        self.runs: dict[int, Run] = {}
        self.ordered = False
        self.paused = False
        self.closed = False
        self.throttled = False
        self.listed = False
        self.max_running = maxsize
        self.per_key = maxsize
        self.rate_per_hour: int | None = None
        self.clear()

    def clear(self) -> None:
        """Forget the indices, not the rows nor the leases."""
        self.lanes: dict[str | None, Lane] = {None: Lane(None)}
        self.rings: dict[int, OrderedDict[str | None, Lane]] = {}
        self._prios: list[int] = []
        self._prios_known: set[int] = set()
        self.places: dict[int, int] = {}
        self.ready = 0
        self.scheduled = 0
        self.dead = 0
        self.oldest = maxsize
        self.leases: dict[int, int] = {}
        self.unsealed: dict[str, int] = {}

    @property
    def running(self) -> int:
        return len(self.leases)

    @property
    def waiting(self) -> int:
        return self.ready + self.scheduled

    def is_open(self) -> bool:
        """Whether a claim would find something."""
        if not self.rings or len(self.leases) >= self.max_running:
            return False
        return not (self.paused or self.closed or self.throttled)

    def first(self) -> Lane | None:
        """The lane whose turn it is."""
        rings = self.rings
        if not rings:
            return None
        prios = self._prios
        while prios[0] not in rings:
            self._prios_known.discard(heappop(prios))
        return next(iter(rings[prios[0]].values()))

    def head(self, lane: Lane) -> int:
        """The number of the job that comes first in a lane."""
        place = lane.heap[0] & PLACE_MASK
        return self.places.get(place, place) if self.places else place

    def swap(self, job: Job, old: MaybeRun, new: MaybeRun) -> None:
        """Move a job from where `old` has it to where `new` has it."""
        lane = self._lane(job.key)
        if isinstance(old, Run) and old.place:
            del self.places[old.place]
        if isinstance(new, Run) and new.place:
            self.places[new.place] = job.n
        if old is not ABSENT:
            self._leave(lane, job, old)  # type: ignore[arg-type]
        if new is not ABSENT:
            self._enter(lane, job, new)  # type: ignore[arg-type]
        self.settle(lane)
        if self.listed is not self.is_open():
            self.state.line_turned(self)

    def start(self, lane: Lane, job: Job, run: Run) -> None:
        """The head of a lane is claimed: what `swap` would do, at less cost."""
        state, n, heap = self.state, job.n, lane.heap
        self.ready -= 1
        if job.expires_us:
            state.ttls.remove((job.expires_us, self.serial, n))
        if not self.ordered:
            heappop(heap)
            if lane.stale:
                drop_stale_top(heap, lane.stale)
        lane.running += 1
        state.leases.arm(self, n, run)
        at = lane.at
        if not heap or self.ordered or lane.running >= self.per_key or heap[0] >> PLACE_BITS != at:
            self.settle(lane)
        if at is not None and lane.at == at and len(self.rings[at]) > 1:
            self.rings[at].move_to_end(lane.key)
        if self.listed is not self.is_open():
            state.line_turned(self)

    def finish(self, job: Job, run: Run) -> None:
        """A running job has ended: what `swap` would do, at less cost."""
        lane = self.lanes[job.key]
        del self.leases[job.n]
        lane.running -= 1
        if self.ordered:
            lane.remove(self._order(job, run))
        self._enter_ended(job, run)
        if lane.at is None or self.ordered:
            self.settle(lane)
        if self.listed is not self.is_open():
            self.state.line_turned(self)

    def promote(self, job: Job, run: Run | None) -> None:
        """A scheduled job's time has come."""
        self.scheduled -= 1
        lane = self._lane(job.key)
        self._enter_ready(lane, job, run)
        self.settle(lane)
        if self.listed is not self.is_open():
            self.state.line_turned(self)

    def _lane(self, key: str | None) -> Lane:
        lane = self.lanes.get(key)
        if lane is None:
            lane = self.lanes[key] = Lane(key)
        return lane

    def settle(self, lane: Lane) -> None:
        """Put a lane into the ring it belongs to now."""
        if not lane.heap:
            want = None
            if not lane.running and lane.key is not None:
                del self.lanes[lane.key]
        elif lane.running >= self.per_key and lane.key is not None:
            want = None
        elif self.ordered:
            want = self._ordered_head(lane)
        else:
            want = lane.heap[0] >> PLACE_BITS
        if want != lane.at:
            self._move(lane, want)

    def _move(self, lane: Lane, want: int | None) -> None:
        rings = self.rings
        if lane.at is not None:
            ring = rings[lane.at]
            del ring[lane.key]
            if not ring:
                del rings[lane.at]
        if want is not None:
            found = rings.get(want)
            if found is None:
                found = rings[want] = OrderedDict()
                if want not in self._prios_known:
                    self._prios_known.add(want)
                    heappush(self._prios, want)
            found[lane.key] = lane
            if lane.at is None:
                self.state.stirred.add(self.queue)
        lane.at = want

    def _ordered_head(self, lane: Lane) -> int | None:
        if lane.running:
            return None
        n = self.head(lane)
        job = self.state.jobs[n]
        run = self.runs.get(n)
        run_us = job.run_us if run is None else run.run_us
        return None if run_us > self.state.now_us else job.priority

    def _order(self, job: Job, run: Run | None) -> int:
        place = job.n if run is None else run.place or job.n
        if self.ordered or not job.priority:
            return place
        return (job.priority << PLACE_BITS) + place

    def _leave(self, lane: Lane, job: Job, run: Run | None) -> None:
        if run is None or run.status == "waiting":
            self._leave_waiting(lane, job, run)
        elif run.status == "running":
            del self.leases[job.n]
            lane.running -= 1
            if self.ordered:
                lane.remove(self._order(job, run))
        else:
            self._leave_ended(job, run)

    def _enter(self, lane: Lane, job: Job, run: Run | None) -> None:
        if run is None or run.status == "waiting":
            self._enter_waiting(lane, job, run)
        elif run.status == "running":
            lane.running += 1
            self.state.leases.arm(self, job.n, run)
            if self.ordered:
                lane.push(self._order(job, run))
        else:
            self._enter_ended(job, run)

    def _enter_waiting(self, lane: Lane, job: Job, run: Run | None) -> None:
        if job.expires_us:
            self.state.ttls.push((job.expires_us, self.serial, job.n))
        if self.ordered:
            lane.push(self._order(job, run))
        run_us = job.run_us if run is None else run.run_us
        if run_us > self.state.now_us:
            self.scheduled += 1
            self.state.alarms.push((run_us, self.serial, job.n))
        else:
            self._enter_ready(lane, job, run)

    def _enter_ready(self, lane: Lane, job: Job, run: Run | None) -> None:
        self.ready += 1
        if job.n < self.oldest:
            self.oldest = job.n
        if not self.ordered:
            lane.push(self._order(job, run))

    def _leave_waiting(self, lane: Lane, job: Job, run: Run | None) -> None:
        if job.expires_us:
            self.state.ttls.remove((job.expires_us, self.serial, job.n))
        run_us = job.run_us if run is None else run.run_us
        scheduled = run_us > self.state.now_us
        if scheduled:
            self.scheduled -= 1
            self.state.alarms.remove((run_us, self.serial, job.n))
        else:
            self.ready -= 1
        if self.ordered or not scheduled:
            lane.remove(self._order(job, run))

    def _enter_ended(self, job: Job, run: Run) -> None:
        if run.status == "dead":
            self.dead += 1
        if run.archived:
            return
        if run.ended > self.state.sealed_last:
            self.unsealed[run.status] = self.unsealed.get(run.status, 0) + 1
        self.state.ending_entered(self, job, run)

    def _leave_ended(self, job: Job, run: Run) -> None:
        if run.status == "dead":
            self.dead -= 1
        if run.archived:
            return
        if run.ended > self.state.sealed_last:
            self.unsealed[run.status] -= 1
        self.state.ending_left(job, run)


def keep_turns(ring: OrderedDict[Any, Any], turns: Iterable[Any]) -> None:
    """Put those named in the order given, behind the others."""
    for name in turns:
        if name in ring:
            ring.move_to_end(name)
