"""A lone push on a directory, against what any durable replacement of a file costs there.

The other side writes the very bytes that the push left in `queue.json`: write, fsync, rename, fsync of the directory.
They take turns one by one. Every 20 pushes a new queue is begun, so that `queue.json` stays below 6 kB.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import bucketq
from benchmarks.figures import Bench, Effort, Figure, median, quantile
from benchmarks.loops import LoopFactory, loops, run_on
from benchmarks.plain import PlainFile

PUSHES = 20
TARGET = 1.5


async def _take_turns(folder: Path, plain: PlainFile, pushes: int) -> list[float]:
    """Seconds of each push."""
    pushed: list[float] = []
    async with bucketq.connect(f"file://{folder}") as client:
        queue = client.queue("mail")
        await queue.push("the first one makes the queue")
        for number in range(pushes):
            began = time.perf_counter()
            await queue.push(f"{number:098d}")
            pushed.append(time.perf_counter() - began)
            plain.replace((folder / "queue.json").read_bytes())
    return pushed


def _some(effort: Effort, loop: LoopFactory) -> tuple[list[float], list[float]]:
    with TemporaryDirectory(dir=effort.folder) as folder, PlainFile(effort.folder) as plain:
        return run_on(loop, _take_turns(Path(folder), plain, PUSHES)), plain.seconds


def run(effort: Effort) -> list[Figure]:
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in loops()}
    for _ in range(effort.pick(20, 3)):
        for name, loop in loops().items():
            for total, new in zip(times[name], _some(effort, loop), strict=True):
                total.extend(new)
    return [_figure(name, *times[name]) for name in times]


def _figure(name: str, pushed: list[float], replaced: list[float]) -> Figure:
    details = {
        "push_p10_ms": 1_000 * quantile(pushed, 0.1),
        "plain_p10_ms": 1_000 * quantile(replaced, 0.1),
        "push_p50_ms": 1_000 * median(pushed),
        "push_p99_ms": 1_000 * quantile(pushed, 0.99),
        "plain_p50_ms": 1_000 * median(replaced),
        "plain_p99_ms": 1_000 * quantile(replaced, 0.99),
        "pushes": len(pushed),
    }
    return Figure(
        f"a lone push, p50, {name}",
        median(pushed) / median(replaced),
        "×",
        TARGET,
        at_most=True,
        note=f"{details['push_p50_ms']:.2f} ms, a plain durable replacement {details['plain_p50_ms']:.2f} ms",
        details=details,
    )


def hot(effort: Effort) -> dict[str, Callable[[], object]]:
    return {f"a lone push and its plain twin, {name}": partial(_some, effort, loop) for name, loop in loops().items()}


BENCH = Bench("lone-push", "directory", run, hot)
