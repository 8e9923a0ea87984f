"""How a file store hears of other processes' writes: inotify where there is one, else a look every 20 ms."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

POLL_S = 0.02

_IN_CLOSE_WRITE, _IN_MOVED_TO, _IN_CREATE, _IN_DELETE = 0x8, 0x80, 0x100, 0x200
_IN_Q_OVERFLOW, _IN_IGNORED, _IN_ISDIR = 0x4000, 0x8000, 0x4000_0000
_FOLDER_EVENTS = _IN_CLOSE_WRITE | _IN_MOVED_TO | _IN_CREATE
_ROOT_EVENTS = _FOLDER_EVENTS | _IN_DELETE
_EVENT = struct.Struct("iIII")
_READ_BYTES = 64 * 1024

IsOwn = Callable[[str], bool]
Notify = Callable[[], None]


class Watch(Protocol):
    """Calls `notify` on the loop it was made on, until closed."""

    def hold(self) -> None:
        """An own write begins: what it causes can be looked at when it has ended."""
        ...

    def release(self) -> None:
        """It has ended."""
        ...

    def close(self) -> None: ...


def watch(root: Path, folders: Sequence[str], is_own: IsOwn, notify: Notify) -> Watch:
    """Watch the objects in `root` itself and in the `folders` right below it, which may not exist yet."""
    try:
        return InotifyWatch(root, folders, is_own, notify)
    except (OSError, AttributeError):  # none on this system, or the user's limit of them is reached
        return PollWatch(root, folders, notify)


class InotifyWatch:
    """Wakes within a few ms of another's write and does nothing in between; own writes do not wake it."""

    def __init__(self, root: Path, folders: Sequence[str], is_own: IsOwn, notify: Notify) -> None:
        self._root = root
        self._folders = folders
        self._is_own = is_own
        self._notify = notify
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._prefixes: dict[int, str] = {}  # by watch descriptor: what precedes a name in its key
        self._poll: PollWatch | None = None
        self._held = 0
        self._reading = False
        self._closed = False
        self._fd = _checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        try:
            self._add(root, "", _ROOT_EVENTS)
            for folder in folders:
                self._add_folder(folder)
        except OSError:
            os.close(self._fd)
            raise
        self._loop = asyncio.get_running_loop()
        self._listen()

    def hold(self) -> None:
        """One look after an own write instead of three during it: each would take the interpreter from the
        thread that writes, a tenth of a small write's time in all."""
        self._held += 1
        if self._reading:
            self._loop.remove_reader(self._fd)
            self._reading = False

    def release(self) -> None:
        """Looks at once, while the thread has nothing to do, so that endless writing does not deafen it either;
        listens again only if the caller does not go on to the next write."""
        self._held -= 1
        if not self._closed:
            self._drain()
            self._loop.call_soon(self._listen)

    def close(self) -> None:
        self._closed = True
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
        if self._poll is not None:
            self._poll.close()

    def _add(self, path: Path, prefix: str, events: int) -> None:
        descriptor = _checked(self._libc.inotify_add_watch(self._fd, os.fsencode(path), events))
        self._prefixes[descriptor] = prefix

    def _add_folder(self, folder: str) -> None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # its creation will be an event in the root
            self._add(self._root / folder, f"{folder}/", _FOLDER_EVENTS)

    def _listen(self) -> None:
        if not (self._closed or self._held or self._reading):
            self._loop.add_reader(self._fd, self._drain)
            self._reading = True

    def _drain(self) -> None:
        try:
            events = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return
        # each one is looked at, also after the first that matters: it may bring a folder to watch
        mattering = [name for descriptor, mask, name in _parsed(events) if self._matters(descriptor, mask, name)]
        if mattering:
            self._notify()

    def _matters(self, descriptor: int, mask: int, name: str) -> bool:
        if mask & _IN_Q_OVERFLOW:  # what came is lost, a folder's creation perhaps
            for folder in self._folders:
                self._folder_came(folder)
            return True
        if mask & _IN_IGNORED:
            return self._prefixes.pop(descriptor, "") == ""  # a folder comes and goes; the root should not
        prefix = self._prefixes.get(descriptor, "")
        if mask & _IN_ISDIR:
            return not prefix and name in self._folders and self._folder_came(name)
        return not self._is_own(prefix + name)

    def _folder_came(self, folder: str) -> bool:
        """Watch it, and look at what was put there before it was watched."""
        try:
            self._add_folder(folder)
            names = os.listdir(self._root / folder)
        except FileNotFoundError:
            return False
        except OSError:  # no more watches to be had
            self._poll = self._poll or PollWatch(self._root, self._folders, self._notify)
            return True
        return any(not self._is_own(f"{folder}/{name}") for name in names if not name.startswith("."))


class PollWatch:
    """Compares the directories' times of modification. Own writes wake it as well."""

    def __init__(self, root: Path, folders: Sequence[str], notify: Notify) -> None:
        self._paths = [root, *(root / folder for folder in folders)]
        self._notify = notify
        self._loop = asyncio.get_running_loop()
        self._seen = self._look()
        self._timer = self._loop.call_later(POLL_S, self._poll)

    def hold(self) -> None:
        pass

    def release(self) -> None:
        pass

    def close(self) -> None:
        self._timer.cancel()

    def _poll(self) -> None:
        self._timer = self._loop.call_later(POLL_S, self._poll)
        found = self._look()
        if found != self._seen:
            self._seen = found
            self._notify()

    def _look(self) -> list[tuple[int, int] | None]:
        return [_signature(path) for path in self._paths]


def _signature(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _parsed(events: bytes) -> Iterator[tuple[int, int, str]]:
    """Watch descriptor, mask and name of each event, but for those of hidden names: temp files and the lock."""
    start = 0
    while start < len(events):
        descriptor, mask, _, length = _EVENT.unpack_from(events, start)
        start += _EVENT.size
        name = events[start : start + length]
        start += length
        if not name.startswith(b"."):
            yield descriptor, mask, os.fsdecode(name.rstrip(b"\0"))


def _checked(returned: int) -> int:
    if returned < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return returned
