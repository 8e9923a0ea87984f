"""What must hold of a state, whatever happened. Each predicate yields what is wrong; none yields: all is well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from bucketq.queue.answers import status_of
from bucketq.queue.line import Line, is_waiting
from bucketq.queue.queue_index import QueueIndex
from bucketq.queue.rows import ENDED, HISTORY_MAX, Job, Run
from bucketq.queue.state import WRITERS_MAX, State


def violations(state: State) -> list[str]:
    """Every broken invariant, in words; empty when all hold."""
    return [f"{check.__name__}: {what}" for check in CHECKS for what in check(state)]


def _lines(state: State) -> Iterator[tuple[QueueIndex, Line, list[tuple[Job, Run | None]]]]:
    for queue in state.queues.values():
        jobs = list(state.roster_after(queue, 0))
        for line in queue.lines.values():
            yield queue, line, [(job, line.runs.get(job.n)) for job in jobs if line in queue.seen_by(job.n)]


def counters_equal_a_recount(state: State) -> Iterator[str]:
    """I13."""
    for _, line, jobs in _lines(state):
        counts = Counter(status_of(job, run, state.now_us) for job, run in jobs)
        have = {"ready": line.ready, "scheduled": line.scheduled, "running": line.running, "dead": line.dead}
        for status, count in have.items():
            if counts[status] != count:  # type: ignore[index]
                yield f"{line.queue}/{line.name} has {counts[status]} {status}, counted {count}"  # type: ignore[index]
        unsealed = Counter(run.status for _, run in jobs if run is not None and run.ended > state.sealed_last)
        if {status: count for status, count in line.unsealed.items() if count} != dict(unsealed):
            yield f"{line.queue}/{line.name} has unsealed {dict(unsealed)}, counted {line.unsealed}"


def lanes_hold_what_can_be_claimed(state: State) -> Iterator[str]:
    """Each lane stands in the ring of its head, exactly while its head can be claimed."""
    for _, line, jobs in _lines(state):
        running = Counter(job.key for job, run in jobs if run is not None and run.status == "running")
        heads: dict[str | None, int] = {}
        for key in {job.key for job, _ in jobs}:
            head = _head(state, line, [(job, run) for job, run in jobs if job.key == key], running[key])
            if head is not None:
                heads[key] = head
        stand = {key: lane.at for key, lane in line.lanes.items() if lane.at is not None}
        rings = {key: at for at, ring in line.rings.items() for key in ring}
        if not heads == stand == rings:
            yield f"{line.queue}/{line.name}: heads {heads}, lanes {stand}, rings {rings}"


def _head(state: State, line: Line, jobs: list[tuple[Job, Run | None]], running: int) -> int | None:
    """The priority at which a key should stand, or None."""
    ordered = line.ordered
    unfinished = [(job, run) for job, run in jobs if run is None or run.status not in ENDED]
    if unfinished and unfinished[0][0].key is not None and running >= line.per_key:
        return None
    places = sorted(
        ((0 if ordered else job.priority, (run.place if run else 0) or job.n, job, run) for job, run in unfinished),
        key=lambda entry: entry[:2],
    )
    if ordered:
        places = [] if running else places[:1]
    for _, _, job, run in places:
        if is_waiting(run) and status_of(job, run, state.now_us) == "ready":
            return job.priority
    return None


def limits_are_kept(state: State) -> Iterator[str]:
    """I10, I11."""
    for _, _, jobs in _lines(state):
        for job, run in jobs:
            if run is None:
                continue
            if len(run.history) > HISTORY_MAX:
                yield f"job {job.n} keeps {len(run.history)} attempts"
            if run.status == "running" and not run.attempt >= 1:
                yield f"job {job.n} runs without an attempt"
            if run.status == "running" and run.run_us > run.claimed_us:
                yield f"job {job.n} runs early"


def endings_are_in_one_place(state: State) -> Iterator[str]:
    """I8: what is not archived is numbered without gaps, and each number is the ending of one run."""
    first = state.segment.first if state.segment is not None else state.sealed_last + 1
    if sorted(state.endings) != list(range(first, state.next_ending)):
        yield f"endings {sorted(state.endings)} are not {first} to {state.next_ending - 1}"
    for number, (n, line) in state.endings.items():
        run = line.runs.get(n)
        if run is None or run.ended != number or run.archived or run.status not in ENDED:
            yield f"ending {number} is not that of job {n}"


def dedup_names_one_job(state: State) -> Iterator[str]:
    """I2."""
    for (queue, dedup), row in state.dedups.items():
        job = state.jobs.get(row.n)
        if job is not None and (job.queue, job.dedup) != (queue, dedup):
            yield f"dedup {dedup!r} of {queue!r} names job {row.n}"
        if (job is None) != (row.gone is not None):
            where = "gone" if job is None else "here"
            yield f"dedup {dedup!r} of {queue!r}: job {row.n} is {where}, its row says {row.gone}"


def jobs_are_listed(state: State) -> Iterator[str]:
    """I1: a job in the table is in its queue's roster once, and somebody sees it."""
    for queue in state.queues.values():
        listed = [n for n in queue.roster if n in state.jobs]
        mine = sorted(n for n, job in state.jobs.items() if job.queue == queue.row.name)
        if listed != mine:
            yield f"{queue.row.name}: roster {listed[:5]}…, table {mine[:5]}…"
        for line in queue.lines.values():
            strays = [n for n in line.runs if n not in state.jobs]
            if strays:
                yield f"{line.queue}/{line.name} has runs of jobs {strays[:5]} that are gone"


def leases_are_watched(state: State) -> Iterator[str]:
    """I5: exactly the running jobs have a lease."""
    for _, line, jobs in _lines(state):
        running = {job.n for job, run in jobs if run is not None and run.status == "running"}
        if running != set(line.leases):
            yield f"{line.queue}/{line.name} runs {running}, watches {set(line.leases)}"


def open_lines_are_known(state: State) -> Iterator[str]:
    for _, line, _ in _lines(state):
        ring = state.open.get(line.name)
        if line.is_open() != (ring is not None and ring.get(line.queue) is line):
            yield f"{line.queue}/{line.name} is {'open' if line.is_open() else 'closed'}, listed otherwise"


def writers_are_bounded(state: State) -> Iterator[str]:
    if len(state.writers) > WRITERS_MAX:
        yield f"{len(state.writers)} writers"
    if any(row.seq > state.seq for row in state.writers.values()):
        yield "a writer is ahead of the state"


CHECKS: tuple[Callable[[State], Iterator[str]], ...] = (
    counters_equal_a_recount,
    lanes_hold_what_can_be_claimed,
    limits_are_kept,
    endings_are_in_one_place,
    dedup_names_one_job,
    jobs_are_listed,
    leases_are_watched,
    open_lines_are_known,
    writers_are_bounded,
)
