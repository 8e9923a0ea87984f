"""Several processes on one directory: races, crashes, wake-ups."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import bucketq.store
from bucketq.store import FileStore

CONTENDER = Path(__file__).with_name("contender.py")
OLD, NEW = b"old", b"new " * 1_000


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[FileStore]:
    opened = FileStore(tmp_path)
    yield opened
    await opened.close()


async def start(*arguments: str | Path) -> Process:
    source = str(Path(bucketq.store.__file__).parents[2])
    return await asyncio.create_subprocess_exec(
        sys.executable, CONTENDER, *arguments, stdin=PIPE, stdout=PIPE, env={**os.environ, "PYTHONPATH": source}
    )


async def start_ready(*arguments: str | Path) -> Process:
    process = await start(*arguments)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    return process


async def let_go(processes: list[Process]) -> list[list[str]]:
    """Let them act, all at once; what each said, by lines."""
    said = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
    return [out.decode().splitlines() for out, _ in said]


async def test_a_counter_that_processes_increment_loses_nothing(store, tmp_path):
    await store.create("counter", b"0")
    processes = await asyncio.gather(*(start_ready("increment", tmp_path) for _ in range(4)))
    await let_go(processes)
    assert [process.returncode for process in processes] == [0] * 4
    assert (await store.get("counter")).data == b"400"


async def test_of_processes_that_create_one_key_exactly_one_wins(store, tmp_path):
    processes = await asyncio.gather(*(start_ready("create", tmp_path) for _ in range(3)))
    won = await let_go(processes)
    assert sorted(int(slot) for slots in won for slot in slots) == list(range(20))
    for process, slots in zip(processes, won, strict=True):
        for slot in slots:
            assert (await store.get(f"log/{slot}")).data == f"{process.pid}".encode()


@pytest.mark.parametrize("key", ["queue.json", "log/1"])
async def test_a_write_wakes_a_waiter_in_another_process(store, tmp_path, key):
    process = await start_ready("wait", tmp_path)
    await store.create(key, b"x")
    assert await let_go([process]) == [["changed"]]


async def test_a_replace_wakes_a_waiter_in_another_process(store, tmp_path):
    version = await store.create("queue.json", b"x")
    process = await start_ready("wait", tmp_path)
    await store.replace("queue.json", b"y", version)
    assert await let_go([process]) == [["changed"]]


@pytest.mark.parametrize(
    ("when", "slot", "queue"),
    [
        ("after a part was written", None, OLD),
        ("before link", None, OLD),
        ("after link", NEW, OLD),
        ("before rename", NEW, OLD),
        ("after rename", NEW, NEW),
    ],
)
async def test_a_process_that_dies_in_a_write_leaves_the_old_or_the_new_whole(store, tmp_path, when, slot, queue):
    version = await store.create("queue.json", OLD)
    process = await start_ready("crash", tmp_path, when)
    await let_go([process])
    assert process.returncode == 9
    found = await store.get("log/1")
    assert (found and found.data) == slot
    assert (await store.get("queue.json")).data == queue
    assert [key async for key in store.list("")] == ["log/1", "queue.json"][slot is None :]
    # the lock died with its holder, and the next to come sweeps up
    successor = FileStore(tmp_path)
    await successor.create("log/2", b"x")
    await successor.create("next", b"x")
    await successor.close()
    assert list(tmp_path.rglob(".tmp-*")) == []
    assert await store.replace("queue.json", b"on", (await store.get("queue.json")).version) != version


async def test_a_store_opened_before_a_fork_refuses_to_work_in_the_child(tmp_path):
    process = await start("fork", tmp_path)
    (said,) = await let_go([process])
    assert "opened before a fork" in said[0]
    assert said[1] == "the parent goes on"
