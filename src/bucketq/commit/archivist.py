"""Writes sealed segments into the archive, and deletes the oldest ones past their retention.

The order keeps the promise that each ending is in exactly one segment: a commit seals, then the segment is created,
then a commit drops; a crash at any point leaves the next one to whoever comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from bucketq.clock import Clock
from bucketq.errors import Conflict, OutcomeUnknown, StateCorrupt, StoreError
from bucketq.journal.archive import Ending, compress, decompress, encode_lines
from bucketq.journal.layout import ARCHIVE_PREFIX, folder_end_us, parse_segment_key, segment_key
from bucketq.queue.rows import Segment
from bucketq.store.base import Store

SEAL_ENDINGS = 10_000
SEAL_BYTES = 8 << 20
SEAL_AGE_US = 60_000_000
SLICE_ENDINGS = 200
TRIES_MAX = 20
PRUNE_MAX = 1_000


class Archivist:
    """Does the archive's I/O. Decides nothing."""

    def __init__(self, store: Store, clock: Clock, random: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._random = random

    async def write(self, tag: str, segment: Segment, endings: list[Ending]) -> None:
        """Create the segment. That it is there already, with the same lines, is as good."""
        slices: list[bytes] = []
        for at in range(0, len(endings), SLICE_ENDINGS):
            slices.append(encode_lines(tag, endings[at : at + SLICE_ENDINGS]))
            await asyncio.sleep(0)
        lines = b"".join(slices)
        key = segment_key(segment.folder, segment.k)
        data = compress(lines)
        for tried in range(1, TRIES_MAX + 1):
            try:
                await self._store.create(key, data)
                return
            except Conflict:
                if await self._is_there(key, lines):
                    return
            except OutcomeUnknown:
                if tried == TRIES_MAX:
                    raise
            await self._clock.sleep(min(2.0, 0.02 * 2**tried) * self._random())
        raise StoreError(f"{key}: the store refuses to create it, though it is not there")

    async def _is_there(self, key: str, lines: bytes) -> bool:
        found = await self._store.get(key)
        if found is None:
            return False
        if decompress(key, found.data) != lines:
            raise StateCorrupt(key, "is there with other records than were sealed; nothing was overwritten")
        return True

    async def past_retention(self, before_us: int) -> list[tuple[int, str]]:
        """The oldest segments whose hour ended before a moment: number and key, at most 1,000."""
        found: list[tuple[int, str]] = []
        async for key in self._store.list(ARCHIVE_PREFIX):
            parsed = parse_segment_key(key)
            if parsed is None:
                continue
            if folder_end_us(parsed[0]) > before_us or len(found) >= PRUNE_MAX:
                break
            found.append((parsed[1], key))
        return found

    async def delete(self, keys: list[str]) -> None:
        for key in keys:
            await self._store.delete(key)
