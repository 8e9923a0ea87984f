"""A heap from which anything can be taken out, at O(log n) a step.

Removed entries stay in the list until they come to the top; which ones they are is known exactly, so an entry that
comes back is revived instead of doubled.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T", int, tuple[int, int, int], tuple[int, str])

COMPACT_MIN = 64


class LazyHeap(Generic[T]):
    """A min-heap of distinct entries; the top is never a removed one."""

    __slots__ = ("_heap", "_stale")

    def __init__(self) -> None:
        self._heap: list[T] = []
        self._stale: set[T] = set()

    def __len__(self) -> int:
        return len(self._heap) - len(self._stale)

    @property
    def top(self) -> T | None:
        return self._heap[0] if self._heap else None

    def push(self, entry: T) -> None:
        if entry in self._stale:
            self._stale.discard(entry)
        else:
            heappush(self._heap, entry)

    def remove(self, entry: T) -> None:
        """Take out an entry that is in the heap."""
        if self._heap[0] == entry:
            heappop(self._heap)
            drop_stale_top(self._heap, self._stale)
        else:
            self._stale.add(entry)
            compact(self._heap, self._stale)


def drop_stale_top(heap: list[T], stale: set[T]) -> None:
    """Restore the rule that the top is live."""
    while stale and heap and heap[0] in stale:
        stale.discard(heappop(heap))


def compact(heap: list[T], stale: set[T]) -> None:
    """Rebuild a heap of which more than half is stale: O(1) per removal, over time."""
    if len(stale) > COMPACT_MIN and len(stale) * 2 > len(heap):
        heap[:] = [entry for entry in heap if entry not in stale]
        heapify(heap)
        stale.clear()
