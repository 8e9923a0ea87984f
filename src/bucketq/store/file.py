"""A store in a directory, shared by any number of processes on one machine."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from bucketq.errors import SettingInvalid, StoreStopped
from bucketq.store.base import Object, Version
from bucketq.store.changes import Changes
from bucketq.store.disk import Disk
from bucketq.store.folder import Folder
from bucketq.store.lane import Lane
from bucketq.store.naming import check_key
from bucketq.store.watch import Watch, watch

T = TypeVar("T")


class FileStore:
    """Keys are paths below `root`. A write that returned survives a power cut (with `fsync`).

    One store object serves one event loop; another process, thread or loop opens its own on the same root.
    An fsync error stops the store: then every call raises `StoreStopped`.
    `watched` are the folders besides the root whose objects others wait for.
    """

    def __init__(
        self, root: Path, fsync: bool = True, *, disk: Disk | None = None, watched: Sequence[str] = ("log",)
    ) -> None:
        """Opens the root, or makes it; `StoreError` if it can't be written to."""
        if sys.platform == "win32":
            raise SettingInvalid("file:// needs flock and directory descriptors, which Windows does not have")
        self._folder = Folder(root, fsync=fsync, disk=disk or Disk())
        self._writer = Lane(f"bucketq write {root}")
        self._reader = Lane(f"bucketq read {root}")  # so that no read waits for an fsync
        self._watched = watched
        self._watch: Watch | None = None
        self._changes = Changes(1)  # nobody knows what happened before the first call
        self._opener = os.getpid()
        self._closed = False

    async def get(self, key: str) -> Object | None:
        """The object, or None if there is none."""
        check_key(key)
        return await self._read(partial(self._folder.get, key))

    async def create(self, key: str, data: bytes) -> Version:
        """Write only if the key is absent, else `Conflict`."""
        check_key(key)
        return await self._write(partial(self._folder.create, key, data))

    async def replace(self, key: str, data: bytes, version: Version) -> Version:
        """Write only if the object is still at `version`, else `Conflict` (also when it is gone)."""
        check_key(key)
        return await self._write(partial(self._folder.replace, key, data, version))

    async def list(self, prefix: str, after: str = "") -> AsyncIterator[str]:
        """The keys that begin with `prefix` and sort after `after`, in ascending order."""
        for key in await self._read(partial(self._folder.keys, prefix, after)):
            yield key

    async def delete(self, key: str) -> None:
        """Remove the object; not an error if there is none. After a power cut it may be there again."""
        check_key(key)
        await self._write(partial(self._folder.delete, key))

    async def changed(self) -> None:
        """Return when another process (or store object) may have written since this task's last call; the
        first call returns at once. Writes through this object are not reported where there is inotify."""
        self._check_usable()
        if self._watch is None:
            self._watch = watch(self._folder.root, self._watched, self._folder.is_own, self._changes.notify)
        await self._changes.wait()

    async def close(self) -> None:
        """Finish what was begun, end the threads, close the descriptors. A second call does nothing."""
        if self._closed or os.getpid() != self._opener:  # after a fork all of it is still the parent's
            return
        self._closed = True
        if self._watch is not None:
            self._watch.close()
        self._changes.notify()
        await asyncio.gather(self._writer.close(), self._reader.close())
        self._folder.close()

    async def _read(self, work: Callable[[], T]) -> T:
        self._check_usable()
        return await self._reader.submit(work)

    async def _write(self, work: Callable[[], T]) -> T:
        self._check_usable()
        held = self._watch
        if held is not None:
            held.hold()
        try:
            return await self._writer.submit(work)
        finally:
            if held is not None:
                held.release()
            if self._folder.stopped is not None:
                self._changes.notify()  # who waits for a change would wait in vain

    def _check_usable(self) -> None:
        if self._closed:
            raise StoreStopped(f"{self._folder.root}: the store is closed")
        if os.getpid() != self._opener:
            # it would have no threads, and it would share its parent's lock instead of being kept out by it
            raise StoreStopped(f"{self._folder.root}: opened before a fork; open the store in the child process")
        self._folder.check_running()
