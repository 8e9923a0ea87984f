"""Workers that claim one job and complete it, on a directory that holds a few hundred jobs.

300 jobs are pushed before; a refiller pushes 100 more each time 100 were completed, in one `push_many`, on the clock.
Completed jobs are sealed into the archive on the way, which is on the clock too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import bucketq
from benchmarks.figures import Bench, Effort, Figure, median
from benchmarks.loops import LoopFactory, loops, run_on
from benchmarks.plain import PlainFile

CALLERS = 100
WAITING = 300
REFILL = 100
TARGET = 5_000
PLAIN_WRITES = 20
STATE_BYTES = 250_000
"""About what `queue.json` has on the way."""


class Line:
    """A queue that is drained by workers and refilled as they go."""

    def __init__(self, queue: bucketq.Queue[Any]) -> None:
        self._queue = queue
        self._completed = 0
        self._refill = asyncio.Semaphore(0)

    async def drain(self, jobs: int) -> None:
        refiller = asyncio.create_task(self._refill_for_ever())
        await asyncio.gather(*(self._work(jobs) for _ in range(CALLERS)))
        refiller.cancel()
        await asyncio.wait([refiller])

    async def _work(self, jobs: int) -> None:
        while self._completed < jobs:
            for claim in await self._queue.claim(wait=10.0):
                await claim.complete()
                self._completed += 1
                if self._completed % REFILL == 0:
                    self._refill.release()

    async def _refill_for_ever(self) -> None:
        while True:
            await self._refill.acquire()
            await self._queue.push_many(payloads(REFILL))


def payloads(count: int) -> list[str]:
    return [f"{number:098d}" for number in range(count)]


async def _drain(folder: str, jobs: int) -> float:
    """Jobs a second."""
    async with bucketq.connect(f"file://{folder}") as client:
        queue = client.queue("mail")
        await queue.push_many(payloads(WAITING))
        began = time.perf_counter()
        await Line(queue).drain(jobs)
        seconds = time.perf_counter() - began
        done = (await queue.stats()).done
    return done / seconds


def _round(effort: Effort, loop: LoopFactory) -> float:
    with TemporaryDirectory(dir=effort.folder) as folder:
        return run_on(loop, _drain(folder, effort.pick(5_000, 1_000)))


def run(effort: Effort) -> list[Figure]:
    rates: dict[str, list[float]] = {name: [] for name in loops()}
    with PlainFile(effort.folder) as plain:
        for _ in range(effort.pick(6, 2)):
            for name, loop in loops().items():
                for _ in range(PLAIN_WRITES):
                    plain.replace(bytes(STATE_BYTES))
                rates[name].append(_round(effort, loop))
    return [_figure(name, rates[name], 1_000 * median(plain.seconds)) for name in rates]


def _figure(name: str, rates: list[float], plain_ms: float) -> Figure:
    return Figure(
        f"claim(1) + complete, {CALLERS} callers, {name}",
        max(rates),
        "/s",
        TARGET,
        note=f"best of {len(rates)}; median {median(rates):,.0f}/s, a plain durable replacement {plain_ms:.2f} ms",
        details={"median": median(rates), "rounds": len(rates), "plain_p50_ms": plain_ms},
    )


def hot(effort: Effort) -> dict[str, Callable[[], object]]:
    return {f"claim + complete, {name}": partial(_round, effort, loop) for name, loop in loops().items()}


BENCH = Bench("claim-complete", "directory", run, hot)
