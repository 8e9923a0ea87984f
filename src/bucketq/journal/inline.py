"""The commit protocol of inline mode: one conditional replace of `queue.json` makes a batch durable.

An unknown outcome is never guessed: the same bytes are sent again under the same condition, and on a conflict the table
of writers in the stored state says whether the commit was ours.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from bucketq.clock import SECOND_US, Clock
from bucketq.errors import Conflict, OutcomeUnknown, StateCorrupt, StoreError, StoreStopped
from bucketq.journal.document import Document, Head, InlineEncoder, decode
from bucketq.journal.layout import QUEUE_KEY
from bucketq.queue.state import State
from bucketq.store.base import Store, Version

T = TypeVar("T")
RETRY_FIRST_S = 0.02
RETRY_MAX_S = 2.0


class Commit(NamedTuple):
    """What identifies a commit."""

    writer: str
    nonce: str
    seq: int


class Landed(NamedTuple):
    """The commit is durable. `newer` is what others committed after it, if anything."""

    newer: Document | None


class Lost(NamedTuple):
    """Somebody else committed first; `document` is how it stands."""

    document: Document


class InlineJournal:
    """Reads and commits `queue.json`. Knows the version that the state in memory was read from."""

    def __init__(self, store: Store, clock: Clock, random: Callable[[], float], patience_s: float) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._patience_us = int(patience_s * SECOND_US)
        self._version: Version | None = None
        self._head: Head | None = None
        self._seen: tuple[Version, Head] | None = None
        self._encoder = InlineEncoder()
        self.bytes_written = 0

    async def read(self, anew: bool = False) -> Document | None:
        """The stored document if it is not the one in memory (or `anew`); None if nothing is new, or nothing stored."""
        found = await self._retried(lambda: self._store.get(QUEUE_KEY))
        if found is None:
            if self._version is not None:
                raise StateCorrupt(QUEUE_KEY, "is gone; restore it from a backup, or close and start a new queue")
            return None
        if found.version == self._version and not anew:
            return None
        document = decode(found.data)
        self._seen = (found.version, document.head)
        return document

    def remember(self, state: State) -> None:
        """The state in memory is now the one that was read last."""
        self._accept_seen()
        self._encoder.remember(state)

    def _accept_seen(self) -> None:
        """Only here: the version that writes are conditional on is always that of the state in memory."""
        if self._seen is not None:
            self._version, self._head = self._seen

    def encode(self, state: State, commit: Commit) -> bytes:
        old = self._head
        grace_ms = old.gc_grace_ms if old is not None else 600_000
        head = Head("inline", commit.writer, commit.nonce, grace_ms, old.broker if old is not None else None)
        data = self._encoder.encode(state, head)
        self.bytes_written = len(data)
        return data

    async def commit(self, data: bytes, commit: Commit) -> Landed | Lost:
        """Make the bytes durable, or find out who was first. Raises OutcomeUnknown when that can't be known, and
        StoreError when nothing was written."""
        deadline_us = self._clock.mono_us() + self._patience_us
        pause_s = RETRY_FIRST_S
        in_doubt: OutcomeUnknown | None = None
        while True:
            try:
                self._version = await self._send(data)
                return Landed(None)
            except Conflict:
                outcome = await self._whose(commit)
                if outcome is not None:
                    return outcome
            except OutcomeUnknown as error:
                in_doubt = error
            except StoreStopped as error:
                raise self._doubted(in_doubt, error) from error
            except StoreError as error:
                if in_doubt is None:
                    raise
                in_doubt = OutcomeUnknown(str(error), error)
            if self._clock.mono_us() >= deadline_us:
                raise self._doubted(in_doubt, Conflict("the store went on refusing the write; try again"))
            await self._clock.sleep(pause_s * (0.5 + self._random() / 2))
            pause_s = min(pause_s * 2, RETRY_MAX_S)

    @staticmethod
    def _doubted(in_doubt: OutcomeUnknown | None, error: Exception) -> Exception:
        if in_doubt is None:
            return error
        return OutcomeUnknown(
            f"no answer from the store ({in_doubt}): the change may have been made; ask again with the same dedup key",
            in_doubt,
        )

    async def _send(self, data: bytes) -> Version:
        if self._version is None:
            return await self._store.create(QUEUE_KEY, data)
        return await self._store.replace(QUEUE_KEY, data, self._version)

    async def _whose(self, commit: Commit) -> Landed | Lost | None:
        """After a conflict: whose is what is stored? None: nobody has written, the slot is free."""
        try:
            document = await self.read()
        except StoreError as error:
            raise OutcomeUnknown(f"can't read back what was committed: {error}", error) from error
        if document is None:
            return None
        row = document.root.writers.get(commit.writer)
        if row is not None and row.nonce == commit.nonce:
            if document.root.seq > commit.seq:
                return Landed(document)
            self._accept_seen()
            return Landed(None)
        if row is None and commit.seq <= document.root.floor:
            raise OutcomeUnknown("too many others have committed since to tell whether this was done")
        return Lost(document)

    async def _retried(self, read: Callable[[], Awaitable[T]]) -> T:
        """Reads are asked again until they answer or patience ends."""
        deadline_us = self._clock.mono_us() + self._patience_us
        pause_s = RETRY_FIRST_S
        while True:
            try:
                return await read()
            except StoreStopped:
                raise
            except StoreError:
                if self._clock.mono_us() >= deadline_us:
                    raise
            await self._clock.sleep(pause_s * (0.5 + self._random() / 2))
            pause_s = min(pause_s * 2, RETRY_MAX_S)
