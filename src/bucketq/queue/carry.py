"""What goes on in memory when the state is read anew: the watch over leases, and whose turn it is."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from bucketq.queue.line import Line, keep_turns
from bucketq.queue.rows import Run
from bucketq.queue.state import State


def carry_over(old: State, new: State, clock_skew_max_us: int, random: float) -> None:
    """Make `new` go on where `old` was."""
    first = old.seq == 0
    for line in new.lines.values():
        queue = old.queues.get(line.queue)
        before = queue.lines.get(line.name) if queue is not None else None
        for n in line.leases:
            deadline_us = (
                _first_deadline_us(new, line, n, clock_skew_max_us) if first else _deadline_us(line, n, before)
            )
            new.leases.arm_until(line, n, deadline_us)
        for at, ring in line.rings.items():
            _keep_turns(ring, before.rings.get(at) if before is not None else None, random)
    for group, lines in new.open.items():
        _keep_turns(lines, old.open.get(group), random)


def _first_deadline_us(state: State, line: Line, n: int, clock_skew_max_us: int) -> int:
    """Of a lease that was there before this process: in full, or, where by wall clock it was over long ago, for as
    little as is left of that. Nobody else may live long enough to see it."""
    run = line.runs[n]
    length_us = run.lease_ms * 1_000
    left_us = run.beat_us + length_us + clock_skew_max_us - state.now_us
    return state.leases.mono_us + max(0, min(length_us, left_us))


def _deadline_us(line: Line, n: int, before: Line | None) -> int:
    """A lease that was not renewed meanwhile is watched on as before, any other in full."""
    watched = before.runs.get(n) if before is not None else None
    if before is not None and watched is not None and n in before.leases and _same_lease(watched, line.runs[n]):
        return before.leases[n]
    return line.leases[n]


def _same_lease(old: Run, new: Run) -> bool:
    return (old.token, old.beat_us, old.lease_ms) == (new.token, new.beat_us, new.lease_ms)


def _keep_turns(ring: OrderedDict[Any, Any], old: OrderedDict[Any, Any] | None, random: float) -> None:
    """A ring that is new starts somewhere."""
    keep_turns(ring, list(ring)[: int(random * len(ring))] if old is None else old)
