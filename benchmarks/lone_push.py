"""A lone push on a directory, against what any durable replacement of a file costs there.

The other side writes the very bytes that the push left in `queue.json`: write, fsync, rename, fsync of the directory.
They take turns one by one. Every 20 pushes a new queue is begun, so that `queue.json` stays below 6 kB.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import bucketq
from benchmarks.figures import Bench, Effort, Figure, median, quantile
from benchmarks.loops import LoopFactory, loops, run_on

PUSHES = 20
TARGET = 1.5


def replace_durably(folder: Path, folder_fd: int, data: bytes) -> None:
    """The least that a durable replacement takes."""
    temp = folder / ".temp"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)
    os.rename(temp, folder / "queue.json")
    os.fsync(folder_fd)


async def _take_turns(folder: Path, pushes: int) -> tuple[list[float], list[float]]:
    """Seconds of each push, and of each plain replacement."""
    mine, plain = folder / "queue", folder / "plain"
    plain.mkdir()
    plain_fd = os.open(plain, os.O_RDONLY)
    pushed: list[float] = []
    replaced: list[float] = []
    async with bucketq.connect(f"file://{mine}") as client:
        queue = client.queue("mail")
        await queue.push("the first one makes the queue")
        replace_durably(plain, plain_fd, b"so here")
        for number in range(pushes):
            began = time.perf_counter()
            await queue.push(f"{number:098d}")
            pushed.append(time.perf_counter() - began)
            data = (mine / "queue.json").read_bytes()
            began = time.perf_counter()
            replace_durably(plain, plain_fd, data)
            replaced.append(time.perf_counter() - began)
    os.close(plain_fd)
    return pushed, replaced


def _some(effort: Effort, loop: LoopFactory) -> tuple[list[float], list[float]]:
    with TemporaryDirectory(dir=effort.folder) as folder:
        return run_on(loop, _take_turns(Path(folder), PUSHES))


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
