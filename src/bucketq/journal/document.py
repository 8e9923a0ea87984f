"""`queue.json`: the one object that everything starts from, as bytes.

The first line holds the format number and a checksum of all that follows it. In inline mode the whole state is inside,
one job a line, so that `cat queue.json` shows the queue.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from bucketq.errors import StateCorrupt
from bucketq.journal.layout import FORMAT, QUEUE_KEY
from bucketq.queue.rows import DedupRow
from bucketq.queue.snapshot import JobRecord, Root, Snapshot
from bucketq.queue.state import State

if TYPE_CHECKING:
    from hashlib import _Hash as HASH

_FIRST_LINE = re.compile(rb'\{"format":([1-9][0-9]{0,8}),"checksum":"([0-9a-f]{32})",\n')
_encoder = msgspec.json.Encoder()


class Broker(Struct, frozen=True, omit_defaults=True):
    """Who serves this queue, if anybody does."""

    address: str
    nonce: str
    epoch: int
    beat: int = 0


class Head(Struct, frozen=True, omit_defaults=True):
    """What stands beside the state. `nonce` makes the bytes of every version unique."""

    mode: Literal["inline"]
    writer: str
    nonce: str
    gc_grace_ms: int = 600_000
    broker: Broker | None = None


class Document(Struct, frozen=True):
    """A decoded `queue.json`."""

    head: Head
    root: Root
    dedups: list[DedupRow]
    jobs: list[JobRecord]

    def snapshot(self) -> Snapshot:
        return Snapshot(self.root, self.jobs, self.dedups)


_decoder = msgspec.json.Decoder(Document)


def seal_parts(parts: Iterable[bytes]) -> bytes:
    """A document of these parts, with the first line before them."""
    parts = list(parts)
    digest = sha256()
    for part in parts:
        digest.update(part)
    return b"".join((b'{"format":%d,"checksum":"%b",\n' % (FORMAT, _short(digest)), *parts))


def _short(digest: HASH) -> bytes:
    return digest.hexdigest()[:32].encode()


def decode(data: bytes) -> Document:
    """The document in these bytes, or StateCorrupt."""
    match = _FIRST_LINE.match(data)
    if match is None:
        raise StateCorrupt(QUEUE_KEY, "is not a bucketq document, or is damaged; restore it from a backup")
    number = int(match[1])
    if number > FORMAT:
        raise StateCorrupt(QUEUE_KEY, f"has format {number}, this version reads up to {FORMAT}; upgrade bucketq")
    if _short(sha256(memoryview(data)[match.end() :])) != match[2]:
        raise StateCorrupt(QUEUE_KEY, "does not match its checksum: it is damaged; restore it from a backup")
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise StateCorrupt(QUEUE_KEY, f"can't be read: {error}") from error


class InlineEncoder:
    """Encodes a state, keeping each job's bytes: a commit encodes only what it changed, and joins."""

    def __init__(self) -> None:
        self._rows: dict[int, bytes] = {}

    def encode(self, state: State, head: Head) -> bytes:
        rows = self._rows
        for n in state.take_touched():
            if n in state.jobs:
                rows[n] = _encoder.encode(state.record(n))
            else:
                rows.pop(n, None)
        return seal_parts(
            (
                b'"head":',
                _encoder.encode(head),
                b',\n"root":',
                _encoder.encode(state.root()),
                b',\n"dedups":',
                _encoder.encode(list(state.live_dedups())),
                b',\n"jobs":[\n',
                b",\n".join(rows.values()),
                b"\n]}\n",
            )
        )

    def remember(self, state: State) -> None:
        """Start over from a state that was loaded."""
        self._rows = {n: _encoder.encode(state.record(n)) for n in state.jobs}
        state.take_touched()
