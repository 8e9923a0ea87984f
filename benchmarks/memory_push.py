"""Pushes by many callers at once through the public API, on a store in memory.

The state is one object in this mode: each commit joins and hashes all of it, so the rate falls as jobs pile up. It is
measured while the queue grows from nothing to 20,000 jobs (4 MB); a growth to 5,000 stands beside it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

import bucketq
from benchmarks.figures import Bench, Effort, Figure, median
from benchmarks.loops import LoopFactory, loops, run_on

CALLERS = 1_000
TARGET = 40_000


async def _push(callers: int, pushes: int) -> tuple[float, float]:
    """The wall and CPU seconds that it took."""

    async def call(number: int) -> None:
        for turn in range(pushes):
            await queue.push(f"{number:049d}{turn:049d}")

    async with bucketq.connect("memory://") as client:
        queue = client.queue("mail")
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(call(number) for number in range(callers)))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        stored = await queue.stats()
        assert stored.ready == callers * pushes
    return wall, cpu


def run(effort: Effort) -> list[Figure]:
    turns = [(name, loop, pushes) for name, loop in loops().items() for pushes in (20, 5)]
    times: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for _ in range(effort.pick(7, 2)):
        for name, loop, pushes in turns:
            times.setdefault((name, pushes), []).append(run_on(loop, _push(CALLERS, pushes)))
    return [_figure(name, pushes, times[name, pushes]) for name, _, pushes in turns]


def _figure(name: str, pushes: int, times: list[tuple[float, float]]) -> Figure:
    jobs = CALLERS * pushes
    wall = [jobs / wall_s for wall_s, _ in times]
    cpu = [jobs / cpu_s for _, cpu_s in times]
    details = {"median": median(wall), "best_by_cpu": max(cpu), "median_by_cpu": median(cpu), "rounds": len(times)}
    return Figure(
        f"push, {CALLERS:,} callers × {pushes}, {name}",
        max(wall),
        "/s",
        TARGET if pushes == 20 else None,
        note=f"best of {len(times)}; by CPU time {max(cpu):,.0f}/s",
        details=details,
        by_cpu=max(cpu),
    )


def hot(effort: Effort) -> dict[str, Callable[[], object]]:
    def path(loop: LoopFactory) -> object:
        return run_on(loop, _push(CALLERS, effort.pick(20, 5)))

    return {f"push, {CALLERS:,} callers, {name}": partial(path, loop) for name, loop in loops().items()}


BENCH = Bench("memory-push", "memory", run, hot)
