"""How a file store hears of a change, and of which it does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvloop

from bucketq.store import FileStore
from bucketq.store.watch import InotifyWatch, PollWatch, watch

needs_inotify = pytest.mark.skipif(not Path("/proc/sys/fs/inotify").exists(), reason="no inotify here")


class Follower:
    """A lasting task that waits for changes."""

    def __init__(self, store: FileStore) -> None:
        self.heard = 0
        self._store = store
        self._woken = asyncio.Event()
        self.task = asyncio.create_task(self._follow())

    async def next(self) -> None:
        await self._woken.wait()
        self._woken.clear()

    async def _follow(self) -> None:
        while True:
            await self._store.changed()
            self.heard += 1
            self._woken.set()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[FileStore]:
    opened = FileStore(tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[FileStore]:
    opened = FileStore(tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def follower(store: FileStore) -> AsyncIterator[Follower]:
    """Has heard of all that happened so far, and waits."""
    follows = Follower(store)
    await follows.next()
    yield follows
    follows.task.cancel()


async def events_are_seen() -> None:
    """The kernel queues an event before the write returns; the store looks one pass of the loop after that."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_the_first_call_returns_at_once(store):
    await store.changed()


@needs_inotify
async def test_own_writes_do_not_wake_a_waiter(store, other, follower):
    version = await store.create("queue.json", b"0")
    for n in range(1, 4):
        version = await store.replace("queue.json", b"%d" % n, version)
        await store.create(f"log/{n}", b"x")
        await events_are_seen()
        assert follower.heard == 1
    await store.delete("log/1")
    await store.delete("queue.json")
    await events_are_seen()
    assert follower.heard == 1
    await other.create("queue.json", b"x")
    await follower.next()


@needs_inotify
async def test_another_writers_change_between_own_writes_is_heard(store, other, follower):
    version = await store.create("queue.json", b"0")
    await events_are_seen()
    assert follower.heard == 1
    version = await other.replace("queue.json", b"1", version)
    await follower.next()
    await store.replace("queue.json", b"2", version)
    writing = [asyncio.create_task(store.create(f"archive/{n}", b"x")) for n in range(5)]
    await other.create("log/1", b"x")
    await asyncio.gather(follower.next(), *writing)


@needs_inotify
async def test_a_store_that_never_stops_writing_hears_of_others_all_the_same(store, other, follower):
    writing = True

    async def write() -> None:
        n = 0
        while writing:
            await store.create(f"archive/{(n := n + 1)}", b"x")

    writers = [asyncio.create_task(write())]
    await other.create("log/1", b"x")
    await follower.next()
    writing = False
    await asyncio.gather(*writers)


@needs_inotify
async def test_an_edit_by_hand_wakes_a_waiter(store, tmp_path, follower):
    await store.create("queue.json", b"x")
    await events_are_seen()
    assert follower.heard == 1
    (tmp_path / "queue.json").write_bytes(b"by hand")
    await follower.next()


@needs_inotify
async def test_a_folder_that_comes_goes_and_comes_again_is_watched(store, other):
    await store.changed()
    for n in range(3):
        await other.create(f"log/{n}", b"x")
        await store.changed()
        await other.create(f"log/{n}-again", b"x")
        await store.changed()
        await other.delete(f"log/{n}")
        await other.delete(f"log/{n}-again")


@needs_inotify
async def test_hidden_names_and_unwatched_folders_wake_nobody(store, other, tmp_path, follower):
    (tmp_path / ".hidden").write_text("")
    await other.create("archive/1", b"x")
    await store.create("fence", b"x")
    await events_are_seen()
    assert follower.heard == 1


def test_it_works_on_uvloop(tmp_path):
    async def scenario() -> None:
        store, other = FileStore(tmp_path), FileStore(tmp_path)
        await store.changed()
        waiter = asyncio.create_task(store.changed())
        await asyncio.sleep(0)
        await store.create("queue.json", b"x")
        await other.create("log/1", b"x")
        await waiter
        await other.create("log/2", b"x")
        await store.changed()
        await store.close()
        await other.close()

    uvloop.run(scenario())


@needs_inotify
async def test_inotify_is_used_where_there_is_one(tmp_path):
    watching = watch(tmp_path, ["log"], lambda key: False, lambda: None)
    assert isinstance(watching, InotifyWatch)
    watching.close()


async def test_without_inotify_directories_are_polled(tmp_path):
    heard = asyncio.Event()
    root = tmp_path / "absent"  # which inotify refuses to watch
    watching = watch(root, ["log"], lambda key: False, heard.set)
    assert isinstance(watching, PollWatch)
    for change in [root.mkdir, (root / "log").mkdir, (root / "log" / "1").touch]:
        change()
        await heard.wait()
        heard.clear()
    watching.close()
