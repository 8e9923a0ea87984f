"""How soon a claim that waits in another process on the same directory gets what is pushed here.

Counted from the return of `push`, when the job is durable, to the return of `claim` over there: the directory watch, a
read, and the claim's own durable write. From the call of `push` stands beside it. Both processes read CLOCK_MONOTONIC,
which is one clock for the machine.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import bucketq
from benchmarks.figures import Bench, Effort, Figure, quantile
from benchmarks.plain import PlainFile

TARGET_MS = 20


async def _wait_for_jobs(url: str) -> None:
    """The other process: claims, says when it got the job, completes."""
    async with bucketq.connect(url) as client:
        queue = client.queue("mail")
        print("ready", flush=True)
        while True:
            for claim in await queue.claim(wait=60.0):
                received = time.monotonic()
                await claim.complete()
                if claim.payload == "stop":
                    return
                print(received, flush=True)


async def _measure(url: str, plain: PlainFile, pushes: int) -> tuple[list[float], list[float]]:
    """For each push, seconds from its call, and from its return, until the claim."""
    rng = Random(1)
    from_call: list[float] = []
    from_return: list[float] = []
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, url, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parent.parent
    )
    assert other.stdout is not None
    await other.stdout.readline()
    async with bucketq.connect(url) as client:
        queue = client.queue("mail")
        for number in range(pushes):
            await asyncio.sleep(0.02 + 0.01 * rng.random())  # until it waits again
            called = time.monotonic()
            await queue.push(f"{number:098d}")
            returned = time.monotonic()
            received = float(await other.stdout.readline())
            from_call.append(received - called)
            from_return.append(received - returned)
            plain.replace(bytes(1_000))
        await queue.push("stop")
        await other.wait()
    return from_call, from_return


def _round(effort: Effort) -> dict[str, list[float]]:
    with TemporaryDirectory(dir=effort.folder) as folder, PlainFile(effort.folder) as plain:
        from_call, from_return = asyncio.run(_measure(f"file://{folder}", plain, effort.pick(300, 30)))
    return {"from_call": from_call, "from_return": from_return, "plain": plain.seconds}


def run(effort: Effort) -> list[Figure]:
    found = _round(effort)
    details = {
        f"{what}_{name}_ms": 1_000 * quantile(times, share)
        for what, times in found.items()
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))
    }
    details["pushes"] = len(found["from_call"])
    return [_figure(name, details) for name in ("p50", "p99")]


def _figure(name: str, details: dict[str, float]) -> Figure:
    note = f"from the push's return; {details[f'from_call_{name}_ms']:.1f} ms from its call, "
    note += f"a plain durable replacement {details[f'plain_{name}_ms']:.1f} ms"
    reached = details[f"from_return_{name}_ms"]
    return Figure(f"push → claim in another process, {name}", reached, "ms", TARGET_MS, True, note, details)


def hot(effort: Effort) -> dict[str, Callable[[], object]]:
    return {"push for a claim that waits elsewhere": lambda: _round(effort)}


BENCH = Bench("wake", "directory", run, hot)

if __name__ == "__main__":
    asyncio.run(_wait_for_jobs(sys.argv[1]))
