"""A bucket for the fault tests: a store, faults in front of it, clients on both, and what can be read back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import bucketq
from bucketq.client.client import Client
from bucketq.clock import Clock as AnyClock
from bucketq.clock import SystemClock
from bucketq.journal.archive import Record, read_records
from bucketq.journal.document import Document, InlineEncoder, decode
from bucketq.journal.layout import ARCHIVE_PREFIX, QUEUE_KEY, parse_segment_key
from bucketq.queue.invariants import violations
from bucketq.queue.state import State
from bucketq.store.base import Store
from bucketq.testing import Clock, FaultyStore, Held, MemoryStore
from bucketq.testing.plan import Verbs

T = TypeVar("T")


def sealed(body: bytes) -> bytes:
    """A document with the right checksum before whatever body."""
    return b'{"format":1,"checksum":"%b",\n%b' % (sha256(body).hexdigest()[:32].encode(), body)


def started(*calls: Coroutine[Any, Any, Any]) -> list[asyncio.Task[Any]]:
    return [asyncio.create_task(call) for call in calls]


class Bucket:
    """In memory, on virtual time. `faulty` is the way of the clients under test, `inner` that of everybody else."""

    def __init__(self, inner: Store | None = None) -> None:
        self.clock = Clock()
        self.inner: Store = inner or MemoryStore(self.clock)
        self.faulty = FaultyStore(self.inner, clock=self.clock)
        self._clients: list[Client] = []
        self._held: list[Held] = []

    def hold(self, verb: Verbs, **options: Any) -> Held:
        """As `FaultyStore.hold`, for `queue.json` unless told otherwise; released at the end of the test."""
        held = self.faulty.hold(verb, **{"key": QUEUE_KEY, **options})
        self._held.append(held)
        return held

    async def connect(self, store: Store | None = None, clock: AnyClock | None = None, **settings: Any) -> Client:
        """A client on the faulty store, or on another; closed at the end of the test."""
        settings = {"probe": False, "worker": "me", **settings}
        client = await bucketq.connect(store or self.faulty, clock=clock or self.clock, **settings)
        self._clients.append(client)
        return client

    async def other(self, **settings: Any) -> Client:
        """A client that meets no faults."""
        return await self.connect(self.inner, worker="other", **settings)

    async def run(self, awaitable: Awaitable[T]) -> T:
        """Await something, letting time pass as it needs it."""
        return await self.clock.run(awaitable, within_s=600)

    async def close(self) -> None:
        """Whoever used the faulty store after its crash is dead, and closes nothing."""
        self.faulty.heal()
        for held in self._held:
            held.release()
        for client in self._clients:
            if not self.faulty.crashed:
                await self.run(client.close())

    @property
    def writes(self) -> int:
        """How many writes of `queue.json` were sent through the faulty store."""
        return sum(call.verb in ("create", "replace") and call.key == QUEUE_KEY for call in self.faulty.log)

    @property
    def reads(self) -> int:
        return self.faulty.calls["get"]

    async def content(self) -> bytes:
        """Of `queue.json`."""
        found = await self.inner.get(QUEUE_KEY)
        assert found is not None
        return found.data

    async def document(self) -> Document:
        return decode(await self.content())

    async def state(self) -> State:
        """The state as stored; what must hold of it, holds."""
        state = State.load((await self.document()).snapshot())
        broken = violations(state)
        assert not broken, broken
        return state

    async def put(self, data: bytes) -> None:
        """Overwrite `queue.json`, as an accident would."""
        found = await self.inner.get(QUEUE_KEY)
        assert found is not None
        await self.inner.replace(QUEUE_KEY, data, found.version)

    async def crowd(self, count: int) -> None:
        """As many commits by as many other writers, in one write."""
        state = State.load((await self.document()).snapshot())
        for number in range(count):
            state.put_stamp(state.seq + 1, state.time_us, state.epoch, f"crowd-{number}", f"{number:016x}")
        encoder = InlineEncoder()
        encoder.remember(state)
        await self.put(encoder.encode(state, (await self.document()).head))

    async def segments(self) -> dict[int, list[Record]]:
        """The archive, by number."""
        found: dict[int, list[Record]] = {}
        async for key in self.inner.list(ARCHIVE_PREFIX):
            parsed = parse_segment_key(key)
            stored = await self.inner.get(key)
            assert parsed is not None
            assert stored is not None
            assert parsed[1] not in found
            found[parsed[1]] = list(read_records(key, stored.data))
        return found

    async def records(self) -> list[Record]:
        """Every record, in order; segments are numbered without gaps and no ending is there twice."""
        segments = await self.segments()
        assert list(segments) == list(range(1, len(segments) + 1))
        records = [record for segment in segments.values() for record in segment]
        endings = [(record.id, record.group, record.ending) for record in records]
        assert len(set(endings)) == len(endings)
        return records


class FileBucket(Bucket):
    """In a directory, on the machine's own time: its threads don't wait for a virtual clock."""

    def __init__(self, root: Path) -> None:
        super().__init__(bucketq.FileStore(root, fsync=False))
        self._root = root
        self._stores = [self.inner]

    async def connect(self, store: Store | None = None, clock: AnyClock | None = None, **settings: Any) -> Client:
        return await super().connect(store, clock or SystemClock(), **settings)

    async def other(self, **settings: Any) -> Client:
        store = bucketq.FileStore(self._root, fsync=False)
        self._stores.append(store)
        return await self.connect(store, worker="other", **settings)

    async def run(self, awaitable: Awaitable[T]) -> T:
        return await asyncio.wait_for(asyncio.ensure_future(awaitable), 30)

    async def close(self) -> None:
        await super().close()
        for store in self._stores:
            await store.close()
