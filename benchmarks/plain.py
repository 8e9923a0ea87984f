"""The disk's own speed: the least that a durable replacement of a file takes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self


class PlainFile:
    """A file in a folder of its own, replaced durably and by nothing else. Used as a context manager."""

    def __init__(self, beside: Path) -> None:
        self._folder = TemporaryDirectory(dir=beside, prefix="plain-")
        self._path = Path(self._folder.name)
        self._fd = os.open(self._path, os.O_RDONLY)
        self.seconds: list[float] = []

    def __enter__(self) -> Self:
        self._replace(b"the first one makes the file")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)
        self._folder.cleanup()

    def replace(self, data: bytes) -> None:
        """Write, fsync, rename, fsync of the directory; how long it took is appended to `seconds`."""
        began = time.perf_counter()
        self._replace(data)
        self.seconds.append(time.perf_counter() - began)

    def _replace(self, data: bytes) -> None:
        temp = self._path / ".temp"
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        os.write(fd, data)
        os.fsync(fd)
        os.close(fd)
        os.rename(temp, self._path / "file")
        os.fsync(self._fd)
