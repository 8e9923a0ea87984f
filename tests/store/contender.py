"""Another process on a file store: `contender.py ROLE ROOT`. Says "ready" when it is, then acts on a line of input."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from bucketq.errors import Conflict, StoreStopped
from bucketq.store import Disk, FileStore


class DyingDisk(Disk):
    """The process dies, as by kill -9, right before or after a call."""

    def __init__(self, when: str) -> None:
        self._when = when
        self.armed = False

    def _pass(self, point: str) -> None:
        if self.armed and point == self._when:
            os._exit(9)

    def write(self, fd: int, data: memoryview) -> int:
        written = super().write(fd, data[: len(data) // 2 or 1])
        self._pass("after a part was written")
        return written

    def rename(self, old: str, new: str, dir_fd: int) -> None:
        self._pass("before rename")
        super().rename(old, new, dir_fd)
        self._pass("after rename")

    def link(self, old: str, new: str, dir_fd: int) -> None:
        self._pass("before link")
        super().link(old, new, dir_fd)
        self._pass("after link")


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def ready() -> None:
    tell("ready")
    sys.stdin.readline()


async def increment(root: Path) -> None:
    store = FileStore(root)
    ready()
    for _ in range(100):
        while True:
            found = await store.get("counter")
            assert found is not None
            try:
                await store.replace("counter", str(int(found.data) + 1).encode(), found.version)
                break
            except Conflict:
                pass
    await store.close()


async def create(root: Path) -> None:
    store = FileStore(root)
    ready()
    for slot in range(20):
        try:
            await store.create(f"log/{slot}", f"{os.getpid()}".encode())
            tell(f"{slot}")
        except Conflict:
            pass
    await store.close()


async def wait(root: Path) -> None:
    store = FileStore(root)
    await store.changed()
    tell("ready")
    await store.changed()
    tell("changed")
    await store.close()


async def crash(root: Path) -> None:
    disk = DyingDisk(sys.argv[3])
    store = FileStore(root, disk=disk)
    found = await store.get("queue.json")
    assert found is not None
    ready()
    disk.armed = True
    await store.create("log/1", b"new " * 1_000)
    await store.replace("queue.json", b"new " * 1_000, found.version)


async def fork(root: Path) -> None:
    store = FileStore(root)
    await store.create("queue.json", b"x")
    child = os.fork()
    if child == 0:
        try:
            await store.get("queue.json")
        except StoreStopped as stopped:
            tell(f"{stopped}")
        await store.close()
        os._exit(0)
    await asyncio.to_thread(os.waitpid, child, 0)
    tell("the parent goes on" if await store.get("queue.json") else "the parent lost its store")
    await store.close()


ROLES: dict[str, Callable[[Path], Awaitable[None]]] = {
    "increment": increment, "create": create, "wait": wait, "crash": crash, "fork": fork
}  # fmt: skip


async def main() -> None:
    await ROLES[sys.argv[1]](Path(sys.argv[2]))


if __name__ == "__main__":
    asyncio.run(main())
