"""A disk that is full, read-only, sick, or edited by hand."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest

from bucketq.errors import Conflict, OutcomeUnknown, StoreError, StoreStopped
from bucketq.store import Disk, FileStore


class FaultyDisk(Disk):
    """Fails the calls named in `faults`, each with its errno, until they are taken out again."""

    def __init__(self, **faults: int) -> None:
        self.faults = faults

    def _pass(self, call: str) -> None:
        if call in self.faults:
            code = self.faults[call]
            raise OSError(code, os.strerror(code))

    def open(self, name: str, flags: int, dir_fd: int | None = None) -> int:
        if flags & os.O_CREAT:
            self._pass("open_to_write")
        return super().open(name, flags, dir_fd)

    def open_to_read(self, name: str, dir_fd: int) -> int:
        self._pass("open_to_read")
        return super().open_to_read(name, dir_fd)

    def read(self, fd: int, count: int) -> bytes:
        self._pass("read")
        return super().read(fd, count)

    def write(self, fd: int, data: memoryview) -> int:
        if len(data) < 2:
            self._pass("write")
        return super().write(fd, data[: max(1, len(data) // 2)])  # a short write, as before a full disk's error

    def fsync(self, fd: int) -> None:
        self._pass("fsync_directory" if stat.S_ISDIR(os.fstat(fd).st_mode) else "fsync_file")
        super().fsync(fd)

    def rename(self, old: str, new: str, dir_fd: int) -> None:
        self._pass("rename")
        super().rename(old, new, dir_fd)

    def link(self, old: str, new: str, dir_fd: int) -> None:
        self._pass("link")
        super().link(old, new, dir_fd)

    def mkdir(self, name: str, dir_fd: int) -> None:
        self._pass("mkdir")
        super().mkdir(name, dir_fd)

    def lock(self, fd: int) -> None:
        self._pass("lock")
        super().lock(fd)


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk()


@pytest.fixture
async def store(tmp_path: Path, disk: FaultyDisk) -> AsyncIterator[FileStore]:
    opened = FileStore(tmp_path, disk=disk)
    yield opened
    await opened.close()


def files(root: Path) -> list[str]:
    found = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return sorted(found)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("write", errno.ENOSPC),
        ("write", errno.EDQUOT),
        ("write", errno.EIO),
        ("open_to_write", errno.EROFS),
        ("open_to_write", errno.EACCES),
        ("rename", errno.ENOSPC),
        ("rename", errno.EROFS),
        ("lock", errno.ENOLCK),
        ("open_to_read", errno.EACCES),
        ("read", errno.EIO),
    ],
)
async def test_a_fault_before_the_rename_changes_nothing_and_the_store_goes_on_when_it_ends(
    store, disk, tmp_path, call, code
):
    version = await store.create("queue.json", b"old")
    disk.faults = {call: code}
    with pytest.raises(StoreError) as failed:
        await store.replace("queue.json", b"new", version)
    assert not isinstance(failed.value, StoreStopped)
    assert isinstance(failed.value.cause, OSError)
    assert failed.value.cause.errno == code
    disk.faults = {}
    assert (await store.get("queue.json"))[:2] == (b"old", version)
    assert files(tmp_path) == [".lock", "queue.json"]
    await store.replace("queue.json", b"new", version)
    assert (await store.get("queue.json")).data == b"new"


@pytest.mark.parametrize("call", ["write", "open_to_write", "mkdir", "link"])
async def test_a_create_on_a_full_disk_leaves_nothing_behind(store, disk, tmp_path, call):
    disk.faults = {call: errno.ENOSPC}
    with pytest.raises(StoreError, match="free some space"):
        await store.create("log/1", b"x")
    disk.faults = {}
    assert files(tmp_path) == [".lock"]
    await store.create("log/1", b"x")
    assert (await store.get("log/1")).data == b"x"


@pytest.mark.parametrize("call", ["open_to_read", "read"])
async def test_a_read_that_fails_is_an_error_and_not_an_absent_object(store, disk, call):
    await store.create("queue.json", b"x")
    disk.faults = {call: errno.EIO}
    with pytest.raises(StoreError, match="cannot read"):
        await store.get("queue.json")
    disk.faults = {}
    assert (await store.get("queue.json")).data == b"x"


async def test_a_link_that_finds_its_place_taken_is_a_conflict(store, disk, tmp_path):
    disk.faults = {"link": errno.EEXIST}
    with pytest.raises(Conflict):
        await store.create("queue.json", b"x")
    assert files(tmp_path) == [".lock"]


async def test_an_error_that_a_network_may_give_for_a_rename_it_has_done_is_an_unknown_outcome(store, disk):
    version = await store.create("queue.json", b"old")
    disk.faults = {"rename": errno.ESTALE}
    with pytest.raises(OutcomeUnknown):
        await store.replace("queue.json", b"new", version)
    disk.faults = {}
    await store.replace("queue.json", b"new", version)


async def assert_stopped(store: FileStore) -> None:
    calls: list[Awaitable[object]] = [
        store.get("queue.json"),
        store.create("other", b""),
        store.replace("queue.json", b"", "0"),
        store.delete("queue.json"),
        anext(store.list("")),
        store.changed(),
    ]
    for call in calls:
        with pytest.raises(StoreStopped, match="Check the disk, then restart the process"):
            await call


async def test_a_failed_fsync_of_the_file_stops_the_store_with_nothing_written(store, disk, tmp_path):
    version = await store.create("queue.json", b"old")
    disk.faults = {"fsync_file": errno.EIO}
    with pytest.raises(StoreStopped) as stopped:
        await store.replace("queue.json", b"new", version)
    assert isinstance(stopped.value.cause, OSError)
    disk.faults = {}
    assert files(tmp_path) == [".lock", "queue.json"]
    assert (tmp_path / "queue.json").read_bytes() == b"old"
    await assert_stopped(store)


async def test_a_failed_fsync_of_the_directory_after_a_replace_stops_the_store_with_an_unknown_outcome(store, disk):
    version = await store.create("queue.json", b"old")
    disk.faults = {"fsync_directory": errno.EIO}
    with pytest.raises(OutcomeUnknown) as unknown:
        await store.replace("queue.json", b"new", version)
    assert isinstance(unknown.value.cause, OSError)
    disk.faults = {}
    await assert_stopped(store)


async def test_a_failed_fsync_of_the_directory_after_a_create_stops_the_store_with_an_unknown_outcome(store, disk):
    disk.faults = {"fsync_directory": errno.EIO}
    with pytest.raises(OutcomeUnknown) as unknown:
        await store.create("queue.json", b"new")
    assert isinstance(unknown.value.cause, OSError)
    disk.faults = {}
    await assert_stopped(store)


async def test_a_failed_fsync_of_a_new_folders_parent_stops_the_store_with_nothing_written(store, disk, tmp_path):
    disk.faults = {"fsync_directory": errno.EIO}
    with pytest.raises(StoreStopped):
        await store.create("log/1", b"x")
    assert files(tmp_path) == [".lock"]
    await assert_stopped(store)


async def test_a_store_that_stops_wakes_those_who_wait_for_a_change(store, disk):
    await store.changed()
    waiter = asyncio.create_task(store.changed())
    await asyncio.sleep(0)
    disk.faults = {"fsync_file": errno.EIO}
    with pytest.raises(StoreStopped):
        await store.create("queue.json", b"x")
    await waiter


async def test_without_fsync_a_disk_that_cannot_is_no_obstacle(tmp_path):
    store = FileStore(tmp_path, fsync=False, disk=FaultyDisk(fsync_file=errno.EIO, fsync_directory=errno.EIO))
    version = await store.create("log/1", b"x")
    await store.replace("log/1", b"y", version)
    await store.close()


async def test_after_closing_calls_are_refused(tmp_path):
    store = FileStore(tmp_path)
    waiting = asyncio.create_task(store.changed())
    await waiting
    waiting = asyncio.create_task(store.changed())
    await asyncio.sleep(0)
    await store.close()
    await waiting
    with pytest.raises(StoreStopped, match="closed"):
        await store.get("queue.json")
    with pytest.raises(StoreStopped, match="closed"):
        await store.changed()


@pytest.mark.parametrize(("code", "said"), [(errno.EACCES, "the right to read and write"), (errno.EROFS, "read-only")])
def test_a_root_that_cannot_be_written_to_is_refused_in_words_that_help(tmp_path, code, said):
    with pytest.raises(StoreError, match=f"{said}.*Name a directory"):
        FileStore(tmp_path, disk=FaultyDisk(open_to_write=code))


async def test_temp_files_of_crashed_processes_are_never_listed_and_are_swept_by_the_next_writer(store, tmp_path):
    (tmp_path / "log").mkdir()
    left = [tmp_path / ".tmp-0123-0", tmp_path / "log" / ".tmp-0123-1"]
    for path in left:
        path.write_bytes(b"torn")
    assert [key async for key in store.list("")] == []
    assert all(path.exists() for path in left)
    await store.create("log/1", b"x")
    assert files(tmp_path) == [".lock", "log/1"]


async def test_an_edit_by_hand_is_noticed(store, tmp_path):
    version = await store.create("queue.json", b"by program")
    (tmp_path / "queue.json").write_bytes(b"by a human")
    with pytest.raises(Conflict):
        await store.replace("queue.json", b"by program again", version)
    found = await store.get("queue.json")
    assert found.data == b"by a human"
    await store.replace("queue.json", b"by program again", found.version)


async def test_a_folder_that_is_removed_or_moved_by_hand_is_made_again(store, tmp_path):
    await store.create("log/1", b"x")
    shutil.rmtree(tmp_path / "log")
    await store.create("log/2", b"x")
    (tmp_path / "log").rename(tmp_path / "old")
    await store.create("log/3", b"x")
    assert files(tmp_path) == [".lock", "log/3", "old/2"]


async def test_a_lock_file_that_is_removed_by_hand_is_made_again_and_keeps_others_out(store, tmp_path):
    other = FileStore(tmp_path)
    version = await store.create("queue.json", b"0")
    (tmp_path / ".lock").unlink()
    version = await other.replace("queue.json", b"1", version)
    results = await asyncio.gather(
        *(one.replace("queue.json", b"2%d" % n, version) for n, one in enumerate([store, other] * 5)),
        return_exceptions=True,
    )
    assert sum(isinstance(result, str) for result in results) == 1
    assert (tmp_path / ".lock").exists()
    await other.close()


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


async def test_more_folders_than_are_kept_open_can_be_written_to(store, tmp_path):
    before = open_descriptors()
    for round_ in range(2):
        for hour in range(40):
            await store.create(f"archive/{hour}/{round_}", b"x")
    deep = "/".join(map(str, range(40)))
    await store.create(f"{deep}/x", b"x")
    await store.delete(f"{deep}/x")
    assert len([key async for key in store.list("archive/")]) == 80
    assert not (tmp_path / "0").exists()
    assert open_descriptors() - before < 20
