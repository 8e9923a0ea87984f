"""The file store's protocol, in blocking calls: flock, compare, temp file, fsync, rename or link, fsync.

The temp file is made under the lock too: who holds the lock knows that any other temp file was left by a crash,
and who loses the comparison has written nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

from bucketq.errors import Conflict, OutcomeUnknown, StoreError, StoreStopped
from bucketq.store.base import Object, Version
from bucketq.store.directories import TEMP_PREFIX, Directories, open_root
from bucketq.store.disk import Disk, explain
from bucketq.store.naming import folder_of, is_visible, version_of

LOCK_NAME = ".lock"
_OWN_MAX = 1_024
_TEMP_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL
# a network file system may give these for a rename that it has done
_MAYBE_DONE = {errno.EIO, errno.ESTALE, errno.ETIMEDOUT}


class Identity(NamedTuple):
    """Differs between any two files ever published under one name."""

    inode: int
    mtime_ns: int
    size: int


class Folder:
    """Objects as files below `root`. Writes come from one thread; other processes are kept out by the lock."""

    def __init__(self, root: Path, *, fsync: bool, disk: Disk) -> None:
        self.root = root.absolute()
        self.stopped: str | None = None
        self._fsync = fsync
        self._disk = disk
        self._temp_prefix = f"{TEMP_PREFIX}{secrets.token_hex(8)}-"
        self._temp_numbers = count()
        self._own: dict[str, tuple[Identity | None, Identity | None]] = {}
        try:
            self._root_fd = open_root(str(self.root), disk, self._sync)
            self._lock_fd = self._open_lock_or_close_root()
        except OSError as error:
            raise StoreError(
                f"cannot keep a queue in {self.root}: {explain(error)}. Name a directory that this user may write to",
                error,
            ) from error
        self._directories = Directories(self._root_fd, disk, self._sync)

    def get(self, key: str) -> Object | None:
        """The object, or None. Never a torn one: files are only ever renamed into place."""
        self.check_running()
        try:
            return self._read(key)
        except OSError as error:
            raise self._explained(f"cannot read {key}", error) from error

    def create(self, key: str, data: bytes) -> Version:
        """Write only if there is no such file, else `Conflict`."""
        with self._locked(f"cannot write {key}"):
            if self._read(key) is not None:
                raise Conflict(f"{key}: it exists")
            return self._publish(key, data, self._link)

    def replace(self, key: str, data: bytes, version: Version) -> Version:
        """Write only if the file's content is still that of `version`, else `Conflict`."""
        with self._locked(f"cannot write {key}"):
            found = self._read(key)
            if found is None or found.version != version:
                raise Conflict(f"{key}: it has changed or is gone")
            return self._publish(key, data, self._disk.rename)

    def delete(self, key: str) -> None:
        """Remove the file, if it is there. Not fsynced: after a power cut it may be back."""
        with self._locked(f"cannot delete {key}"):
            self._remember(key, None)
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                self._disk.unlink(key, self._root_fd)
            self._directories.remove_if_empty(key.rpartition("/")[0])

    def keys(self, prefix: str, after: str) -> list[str]:
        """The keys that begin with `prefix` and sort after `after`, in ascending order."""
        self.check_running()
        folder = folder_of(prefix)
        try:
            return list(self._walk(f"{folder}/" if folder else "", prefix, after))
        except OSError as error:
            raise self._explained(f"cannot list {prefix or 'the root'}", error) from error

    def identity(self, key: str) -> Identity | None:
        """Which file is there now; None if there is none."""
        try:
            return _identity(os.stat(key, dir_fd=self._root_fd))
        except OSError:
            return None

    def is_own(self, key: str) -> bool:
        """Whether what is there now was put there (or removed) through this object."""
        own = self._own.get(key)
        return own is not None and self.identity(key) in own

    def check_running(self) -> None:
        """Raise `StoreStopped` once an fsync has failed."""
        if self.stopped is not None:
            raise StoreStopped(self.stopped)

    def close(self) -> None:
        """Close every descriptor."""
        self._directories.close()
        os.close(self._lock_fd)
        os.close(self._root_fd)

    def _read(self, key: str) -> Object | None:
        try:
            fd = self._disk.open_to_read(key, self._root_fd)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            found = os.fstat(fd)
            if stat.S_ISDIR(found.st_mode):
                return None
            chunks = []
            while chunk := self._disk.read(fd, found.st_size + 1):
                chunks.append(chunk)
        finally:
            os.close(fd)
        data = b"".join(chunks)
        return Object(data, version_of(data), found.st_mtime_ns // 1_000)

    def _publish(self, key: str, data: bytes, place: Callable[[str, str, int], None]) -> Version:
        parent, _, name = key.rpartition("/")
        dir_fd = self._directories.open(parent)
        temp = f"{self._temp_prefix}{next(self._temp_numbers)}"
        try:
            self._remember(key, self._write_temp(temp, data, dir_fd))
            self._place(place, temp, name, dir_fd)
        except BaseException:
            with contextlib.suppress(OSError):
                self._disk.unlink(temp, dir_fd)
            raise
        try:
            self._sync(dir_fd)
        except StoreStopped as stopped:
            raise OutcomeUnknown(f"{key}: written, but perhaps not for good. {stopped}", stopped.cause) from stopped
        return version_of(data)

    def _write_temp(self, temp: str, data: bytes, dir_fd: int) -> Identity:
        fd = self._disk.open(temp, _TEMP_FLAGS, dir_fd)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._disk.write(fd, rest) :]
            self._sync(fd)
            return _identity(os.fstat(fd))
        finally:
            os.close(fd)

    def _place(self, place: Callable[[str, str, int], None], temp: str, name: str, dir_fd: int) -> None:
        try:
            place(temp, name, dir_fd)
        except FileExistsError as error:
            raise Conflict(f"{name}: it exists") from error
        except OSError as error:
            if error.errno in _MAYBE_DONE:
                raise OutcomeUnknown(f"{name}: {explain(error)}", error) from error
            raise

    def _link(self, temp: str, name: str, dir_fd: int) -> None:
        self._disk.link(temp, name, dir_fd)
        with contextlib.suppress(OSError):  # the object is there; the second name is swept at the next start
            self._disk.unlink(temp, dir_fd)

    def _remember(self, key: str, identity: Identity | None) -> None:
        # Before the file is in place, so that its event finds this; hence the one before it counts as well.
        self._own[key] = identity, self._own.get(key, (identity,))[0]
        if len(self._own) > _OWN_MAX:
            del self._own[next(iter(self._own))]

    def _sync(self, fd: int) -> None:
        """After a failed fsync the kernel may have dropped the data and report success the next time."""
        if not self._fsync:
            return
        try:
            self._disk.fsync(fd)
        except OSError as error:
            self.stopped = f"{self.root}: fsync failed ({explain(error)}). Check the disk, then restart the process"
            raise StoreStopped(self.stopped, error) from error

    @contextlib.contextmanager
    def _locked(self, doing: str) -> Iterator[None]:
        self.check_running()
        try:
            self._acquire()
            try:
                yield
            finally:
                with contextlib.suppress(OSError):  # what was written stands
                    self._disk.unlock(self._lock_fd)
        except OSError as error:
            raise self._explained(doing, error) from error

    def _acquire(self) -> None:
        self._disk.lock(self._lock_fd)
        while not os.fstat(self._lock_fd).st_nlink:  # removed by hand: the others would lock a new one
            new_fd = self._open_lock()  # if that fails, the old one stays open, and is closed once
            os.close(self._lock_fd)
            self._lock_fd = new_fd
            self._disk.lock(self._lock_fd)

    def _open_lock(self) -> int:
        return self._disk.open(LOCK_NAME, os.O_RDWR | os.O_CREAT, self._root_fd)

    def _open_lock_or_close_root(self) -> int:
        try:
            return self._open_lock()
        except OSError:
            os.close(self._root_fd)
            raise

    def _explained(self, doing: str, error: OSError) -> StoreError:
        return StoreError(f"{self.root}: {doing}: {explain(error)}", error)

    def _walk(self, folder: str, prefix: str, after: str) -> Iterator[str]:
        for name in self._names(folder):
            key = folder + name
            if name.endswith("/"):
                # skip a folder in which nothing can match, or in which everything sorts before `after`
                matches = key.startswith(prefix) or prefix.startswith(key)
                if matches and (key > after or after.startswith(key)):
                    yield from self._walk(key, prefix, after)
            elif key > after and key.startswith(prefix):
                yield key

    def _names(self, folder: str) -> list[str]:
        """What is in a folder, in the order of keys; directories with a slash at the end."""
        try:
            fd = self._disk.open(folder or ".", os.O_RDONLY, self._root_fd)
        except (FileNotFoundError, NotADirectoryError):
            return []
        try:
            with os.scandir(fd) as entries:
                return sorted(
                    f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries if is_visible(entry.name)
                )
        finally:
            os.close(fd)


def _identity(found: os.stat_result) -> Identity:
    return Identity(found.st_ino, found.st_mtime_ns, found.st_size)
