"""10,000 jobs through one directory: pushed here, done by several processes, then counted in the archive.

    make demo
    make demo ARGS="/tmp/my-queue --jobs 2000"

The directory is DIR, else $DEMO_DIR, else a new one. Ctrl-C stops it at any moment; run again on the same directory, it
goes on with what is left there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

import zstandard
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import bucketq

QUEUE = "thumbnails"
PROCESSES = 4
LOOPS = 8
CLAIM_AT_ONCE = 25
WORK_S = 0.1
CHUNK = 500
WAITING_MAX = 1_000
"""The next chunk is pushed when fewer wait: the whole queue is one file, and a small file is quick to replace."""

console = Console(highlight=False, markup=False, soft_wrap=True)


# -- a worker process: `demo.py DIR --work`


async def work(url: str) -> None:
    """Claim, work and complete in several loops, until the input ends. Says how many it did, a line per batch."""
    async with bucketq.connect(url) as client:
        print("ready", flush=True)
        loops = [asyncio.create_task(work_loop(client.queue(QUEUE))) for _ in range(LOOPS)]
        until_told = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
        await asyncio.wait([until_told, *loops], return_when=asyncio.FIRST_COMPLETED)
        for loop in loops:
            loop.cancel()
        for ended in await asyncio.gather(*loops, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended


async def work_loop(queue: bucketq.Queue[Any]) -> None:
    while True:
        claims = await queue.claim(n=CLAIM_AT_ONCE, wait=60)
        try:
            await asyncio.sleep(WORK_S * 2 * random.random())  # the work; its heartbeats are not needed so soon
            errors = await queue.complete_many(claims)
        except asyncio.CancelledError:
            await asyncio.gather(*(claim.release() for claim in claims), return_exceptions=True)
            raise
        print(errors.count(None), flush=True)


# -- the parent


class Workers:
    """The worker processes, and how many jobs each has done."""

    def __init__(self, url: str, queue: bucketq.Queue[Any], done_before: int) -> None:
        self._url = url
        self._queue = queue
        self._done_before = done_before
        self._counted = 0
        self._processes: list[Process] = []
        self._listeners: list[asyncio.Task[None]] = []
        self._news = asyncio.Event()
        self.done: Counter[int] = Counter()

    async def __aenter__(self) -> Self:
        for _ in range(PROCESSES):
            command = (sys.executable, __file__, self._url, "--work")
            # in a session of its own Ctrl-C does not reach it: it stops when its input ends
            process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, start_new_session=True)
            self._processes.append(process)
        for process in self._processes:
            assert process.stdout is not None
            await process.stdout.readline()  # it is ready
            self._listeners.append(asyncio.create_task(self._listen(process)))
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        await asyncio.gather(*self._listeners, *(process.wait() for process in self._processes))

    @property
    def total(self) -> int:
        return max(self.done.total(), self._counted)

    async def until(self, count: int) -> None:
        """Wait until so many jobs are done."""
        while self.total < count:
            if all(listener.done() for listener in self._listeners):
                raise SystemExit("all workers have ended; what they said is above")
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), 2)
            except TimeoutError:  # one that was killed may not have told of its last batch: the queue knows
                self._counted = (await self._queue.stats()).done - self._done_before

    async def _listen(self, process: Process) -> None:
        assert process.stdout is not None
        self.done[process.pid] = 0
        async for line in process.stdout:
            self.done[process.pid] += int(line)
            self._news.set()
        self._news.set()


class Bars:
    """How far it is: bars on a terminal, a line now and then elsewhere."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._shown = 0
        self._progress = Progress(
            TextColumn("{task.description:>8}"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn(),
            console=console, disable=not console.is_terminal,
        )  # fmt: skip
        self._pushed = self._progress.add_task("pushed", total=total)
        self._done = self._progress.add_task("done", total=total)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, pushed: int, done: int) -> None:
        self._progress.update(self._pushed, completed=pushed)
        self._progress.update(self._done, completed=min(done, self._total))
        if not console.is_terminal and (pushed + done - self._shown >= 2_000 or done >= self._total):
            self._shown = pushed + done
            console.print(f"  pushed {pushed:6,}   done {done:6,}")


async def push_and_watch(queue: bucketq.Queue[Any], workers: Workers, left: int, count: int) -> set[str]:
    """Push jobs while the workers do them; the ids of those pushed. `left` are there from an earlier run."""
    ids: set[str] = set()
    with Bars(left + count) as bars:
        while len(ids) < count:
            await workers.until(left + len(ids) - WAITING_MAX)
            chunk = range(len(ids), min(len(ids) + CHUNK, count))
            jobs = await queue.push_many([{"image": f"{number}.jpg", "width": 128} for number in chunk])
            ids.update(job.id for job in jobs)
            bars.show(left + len(ids), workers.total)
        while workers.total < left + count:
            await workers.until(workers.total + 1)
            bars.show(left + count, workers.total)
    return ids


def archive(directory: Path) -> tuple[int, Iterator[dict[str, Any]]]:
    """How many segments there are, and the records in them. Any tool that knows zstd and JSON can read them."""
    segments = sorted(directory.glob("archive/*/*.ndjson.zst"))

    def records() -> Iterator[dict[str, Any]]:
        for segment in segments:
            for line in zstandard.ZstdDecompressor().decompress(segment.read_bytes()).splitlines():
                yield json.loads(line)

    return len(segments), records()


def show_workers(workers: Workers, seconds: float) -> None:
    table = Table("process", "jobs done", title_justify="left")
    table.columns[1].justify = "right"
    for pid, done in workers.done.items():
        table.add_row(str(pid), f"{done:,}")
    console.print(table)
    console.print(f"{workers.total:,} jobs in {seconds:.1f} s, {PROCESSES} processes with {LOOPS} loops each\n")


def show_archive(directory: Path, ids: set[str]) -> bool:
    """Whether each job of this run is in the archive, once."""
    segments, records = archive(directory)
    found: Counter[str] = Counter()
    sample: dict[str, Any] = {}
    for sample in records:
        found[sample["id"]] += 1
    console.print(f"the archive has {segments:,} segments with {found.total():,} records, such as")
    console.print_json(json.dumps(sample), indent=None)
    once = sum(found[job_id] == 1 for job_id in ids)
    console.print(f"of the {len(ids):,} jobs pushed just now, {once:,} are in it exactly once\n")
    return once == len(ids)


def show_what_next(directory: Path) -> None:
    state = directory / "queue.json"
    url = directory.as_uri()
    console.print(f"the whole queue is in {state} ({state.stat().st_size:,} bytes). What to try next:")
    console.print(f"  cat {state}")
    console.print(f"  zstd -dc {directory}/archive/*/*.zst | head")
    console.print(f"  {sys.executable} -i -c 'import bucketq; client = bucketq.connect_sync(\"{url}\")'")
    console.print(f"  make demo ARGS={directory}, and meanwhile kill -9 a worker: its jobs come back after their lease")


async def demo(directory: Path, count: int) -> bool:
    url = directory.as_uri()
    console.print(f"a queue in {directory}: {count:,} jobs, {PROCESSES} processes that do them\n")
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(bucketq.connect(url))
        queue = client.queue(QUEUE)
        await queue.configure(lease=10)
        before = await queue.stats()
        left = before.ready + before.scheduled + before.running
        if left:
            console.print(f"{left:,} jobs are left from an earlier run; they are done first")
        async with Workers(url, queue, before.done) as workers:
            began = time.monotonic()
            ids = await push_and_watch(queue, workers, left, count)
            seconds = time.monotonic() - began
        show_workers(workers, seconds)
        stats = await queue.stats()
        console.print(f"stats: ready {stats.ready:,}, running {stats.running:,}, dead {stats.dead:,}, "
                      f"done {stats.done:,} in all\n")  # fmt: skip
        await client.upkeep()  # what has ended goes to the archive within a minute; this is for the impatient
    complete = show_archive(directory, ids)
    show_what_next(directory)
    return complete


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="10,000 jobs through one directory.")
    parser.add_argument("directory", nargs="?", metavar="DIR", help="where the queue is kept; a new one by default")
    parser.add_argument("--jobs", type=int, default=10_000, metavar="N", help="how many (default 10,000)")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    given = arguments()
    if given.work:
        asyncio.run(work(given.directory))
        return 0
    chosen = given.directory or os.environ.get("DEMO_DIR")
    directory = Path(chosen).absolute() if chosen else Path(tempfile.mkdtemp(prefix="bucketq-demo-"))
    try:
        return 0 if asyncio.run(demo(directory, given.jobs)) else 1
    except KeyboardInterrupt:
        console.print(f"\nstopped. Nothing is lost: make demo ARGS={directory} goes on with what is left")
        return 130


if __name__ == "__main__":
    sys.exit(main())
