"""A store in this process's memory: for tests, trials and work that need not outlive the process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

from bucketq.clock import Clock, SystemClock
from bucketq.errors import Conflict
from bucketq.store.base import Object, Version
from bucketq.store.changes import Changes
from bucketq.store.naming import check_key, folder_of, version_of


class MemoryStore:
    """Objects in a dict. One store may serve several clients, threads and event loops at once.

    Every call lets other tasks run once before it acts, as a store with real I/O would.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._objects: dict[str, Object] = {}
        self._changes = Changes()

    async def get(self, key: str) -> Object | None:
        """The object, or None if there is none."""
        check_key(key)
        await asyncio.sleep(0)
        with self._lock:
            return self._objects.get(key)

    async def create(self, key: str, data: bytes) -> Version:
        """Write only if the key is absent, else `Conflict`."""
        return await self._write(key, data, None)

    async def replace(self, key: str, data: bytes, version: Version) -> Version:
        """Write only if the object is still at `version`, else `Conflict` (also when it is gone)."""
        return await self._write(key, data, version)

    async def _write(self, key: str, data: bytes, expected: Version | None) -> Version:
        check_key(key)
        await asyncio.sleep(0)
        data = bytes(data)
        written = Object(data, version_of(data), self._clock.wall_us())
        with self._lock:
            found = self._objects.get(key)
            if (found.version if found else None) != expected:
                raise Conflict(f"{key}: it exists" if expected is None else f"{key}: it has changed or is gone")
            self._objects[key] = written
        self._changes.notify()
        return written.version

    async def list(self, prefix: str, after: str = "") -> AsyncIterator[str]:
        """The keys that begin with `prefix` and sort after `after`, in ascending order."""
        folder_of(prefix)
        await asyncio.sleep(0)
        with self._lock:
            keys = sorted(key for key in self._objects if key > after and key.startswith(prefix))
        for key in keys:
            yield key

    async def delete(self, key: str) -> None:
        """Remove the object; not an error if there is none."""
        check_key(key)
        await asyncio.sleep(0)
        with self._lock:
            found = self._objects.pop(key, None)
        if found is not None:
            self._changes.notify()

    async def changed(self) -> None:
        """Return once anybody has written since this task's last call. Writes through this object count too:
        several clients may share it. Call it from one lasting task per waiter."""
        await self._changes.wait()

    async def close(self) -> None:
        """Does nothing: others may share the store."""


_named: dict[str, MemoryStore] = {}
_named_lock = threading.Lock()


def memory_store(name: str = "") -> MemoryStore:
    """The store of that name, one per process and made when first asked for; without a name, a new one."""
    if not name:
        return MemoryStore()
    with _named_lock:
        return _named.setdefault(name, MemoryStore())
