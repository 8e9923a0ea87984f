"""The system calls of the file store that a sick, full or slow disk lets fail."""

from __future__ import annotations

import errno
import os
import sys

if sys.platform != "win32":
    import fcntl

_NO_ATIME = getattr(os, "O_NOATIME", 0)


class Disk:
    """Passed to the file store, so that a test can pass one that fails. Names are relative to `dir_fd`."""

    def open(self, name: str, flags: int, dir_fd: int | None = None) -> int:
        return os.open(name, flags, 0o666, dir_fd=dir_fd)

    def open_to_read(self, name: str, dir_fd: int) -> int:
        # A read that updates the file's time of access dirties its inode and makes the next fsync slower.
        try:
            return os.open(name, os.O_RDONLY | _NO_ATIME, dir_fd=dir_fd)
        except PermissionError:  # only a file's owner may ask for that
            return os.open(name, os.O_RDONLY, dir_fd=dir_fd)

    def read(self, fd: int, count: int) -> bytes:
        return os.read(fd, count)

    def write(self, fd: int, data: memoryview) -> int:
        return os.write(fd, data)

    def fsync(self, fd: int) -> None:
        os.fsync(fd)

    def rename(self, old: str, new: str, dir_fd: int) -> None:
        os.rename(old, new, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)

    def link(self, old: str, new: str, dir_fd: int) -> None:
        os.link(old, new, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)

    def unlink(self, name: str, dir_fd: int) -> None:
        os.unlink(name, dir_fd=dir_fd)

    def mkdir(self, name: str, dir_fd: int) -> None:
        os.mkdir(name, dir_fd=dir_fd)

    def rmdir(self, name: str, dir_fd: int) -> None:
        os.rmdir(name, dir_fd=dir_fd)

    def lock(self, fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)

    def unlock(self, fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)


_ADVICE = {
    errno.ENOSPC: "free some space on the disk",
    errno.EDQUOT: "free some space or raise the quota",
    errno.EROFS: "the file system is mounted read-only",
    errno.EACCES: "give this user the right to read and write there",
    errno.EPERM: "give this user the right to read and write there, on a file system with hard links",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "raise the system's limit of open files",
    errno.ENOTDIR: "one of its parts is a file, not a directory",
    errno.ENOLCK: "the file system must support flock",
}


def explain(error: OSError) -> str:
    """The error in words, and what to do about it where that is known."""
    said = error.strerror or str(error)
    advice = _ADVICE.get(error.errno or 0)
    return f"{said}: {advice}" if advice else said
