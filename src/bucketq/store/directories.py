"""The directories below a file store's root: made durable when first used, kept open for fsync."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import NamedTuple

from bucketq.store.disk import Disk

TEMP_PREFIX = ".tmp-"
_OPEN_MAX = 16
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)


class _Opened(NamedTuple):
    fd: int
    inode: int


class Directories:
    """Used under the store's lock only, which makes every temporary file found here one that a crash left."""

    def __init__(self, root_fd: int, disk: Disk, sync: Callable[[int], None]) -> None:
        self._root_fd = root_fd
        self._disk = disk
        self._sync = sync
        self._opened: dict[str, _Opened] = {}  # the most recently used last
        self._root_swept = False

    def open(self, path: str) -> int:
        """The directory's descriptor; it stays open. Made, with its parents, if it is not there."""
        if not path:
            return self._open_root()
        opened = self._opened.pop(path, None)
        if opened is None or opened.inode != self._inode(path):  # by hand, it may have been moved or removed
            if opened is not None:
                os.close(opened.fd)
            opened = self._enter(path)
        self._opened[path] = opened
        if len(self._opened) > _OPEN_MAX:
            os.close(self._opened.pop(next(iter(self._opened))).fd)
        return opened.fd

    def remove_if_empty(self, path: str) -> None:
        """A directory exists only for its objects; one that is not empty stays, silently."""
        while path:
            try:
                self._disk.rmdir(path, self._root_fd)
            except OSError:
                return
            path = path.rpartition("/")[0]

    def close(self) -> None:
        while self._opened:
            os.close(self._opened.popitem()[1].fd)

    def _open_root(self) -> int:
        if not self._root_swept:
            self._sweep(self._root_fd)
            self._root_swept = True
        return self._root_fd

    def _inode(self, path: str) -> int | None:
        try:
            return os.stat(path, dir_fd=self._root_fd).st_ino
        except OSError:
            return None

    def _enter(self, path: str) -> _Opened:
        parent, _, name = path.rpartition("/")
        parent_fd = self.open(parent)
        with contextlib.suppress(FileExistsError):
            self._disk.mkdir(name, parent_fd)
        self._sync(parent_fd)  # also if it was there: its maker may have died before this
        fd = self._disk.open(name, _DIRECTORY, parent_fd)
        try:
            self._sweep(fd)
            return _Opened(fd, os.fstat(fd).st_ino)
        except BaseException:
            os.close(fd)
            raise

    def _sweep(self, fd: int) -> None:
        for name in os.listdir(fd):
            if name.startswith(TEMP_PREFIX):
                with contextlib.suppress(OSError):
                    self._disk.unlink(name, fd)


def open_root(root: str, disk: Disk, sync: Callable[[int], None]) -> int:
    """A descriptor of the root, an absolute path; what is missing of it is made and made durable."""
    try:
        return disk.open(root, _DIRECTORY)
    except FileNotFoundError:
        parent_fd = open_root(os.path.dirname(root), disk, sync)
    try:
        with contextlib.suppress(FileExistsError):
            disk.mkdir(os.path.basename(root), parent_fd)
        sync(parent_fd)
    finally:
        os.close(parent_fd)
    return disk.open(root, _DIRECTORY)
