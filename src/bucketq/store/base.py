"""The store seam: bytes under keys with conditional writes.

A write has three outcomes: it returns (done), it raises `Conflict` (the condition did not hold, nothing was
written by this request), or it raises `OutcomeUnknown` (it may have been applied, now or later). Any other
`StoreError` means that nothing was written. `get`, `list` and `delete` raise `StoreError` when they fail.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple, Protocol, runtime_checkable

Version = str
"""Opaque; equal for equal contents of one key, different otherwise."""


class Object(NamedTuple):
    data: bytes
    version: Version
    modified_us: int
    """When the store says it was written, in microseconds since 1970 by the store's clock."""


@runtime_checkable
class Store(Protocol):
    """What bucketq needs of an object store. Keys are relative, with `/` between parts."""

    async def get(self, key: str) -> Object | None:
        """The object, or None if there is none."""
        ...

    async def create(self, key: str, data: bytes) -> Version:
        """Write only if the key is absent, else `Conflict`."""
        ...

    async def replace(self, key: str, data: bytes, version: Version) -> Version:
        """Write only if the object is still at `version`, else `Conflict` (also when it is gone)."""
        ...

    def list(self, prefix: str, after: str = "") -> AsyncIterator[str]:
        """The keys that begin with `prefix` and sort after `after`, in ascending order."""
        ...

    async def delete(self, key: str) -> None:
        """Remove the object; not an error if there is none."""
        ...

    async def changed(self) -> None:
        """Return when something under the store may have changed since the last call (a hint, not a promise
        of a change; writes made through this very object need not be reported)."""
        ...

    async def close(self) -> None:
        """Release handles and threads. Nothing is called afterwards."""
        ...
