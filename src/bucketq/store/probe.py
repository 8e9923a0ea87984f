"""The look at a store before it is trusted: does it keep conditions, and does it agree on the time?"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Awaitable, Callable

from bucketq.clock import SECOND_US
from bucketq.errors import Conflict, OutcomeUnknown, SettingInvalid, StoreError
from bucketq.store.base import Object, Store, Version

_ATTEMPTS = 5

Write = Callable[[], Awaitable[Version]]


async def probe(
    store: Store, *, wall_us: int | Callable[[], int], clock_skew_max_s: float, nonce: str | None = None
) -> None:
    """Write, conditionally, under `probe/`, and clean up.

    Raises `StoreError` if the store ignores a condition or can't be written to, and `SettingInvalid` if this
    machine's wall clock is further than `clock_skew_max_s` from the store's. `nonce` (random if not given)
    makes keys and bytes unique.
    """
    nonce = nonce or secrets.token_hex(16)
    run = _Probe(store, nonce)
    try:
        written = await run.check_conditions()
    finally:
        await run.clean_up()
    _check_clock(written.modified_us, wall_us() if callable(wall_us) else wall_us, clock_skew_max_s)


class _Probe:
    def __init__(self, store: Store, nonce: str) -> None:
        self._store = store
        self._nonce = nonce
        self._key = f"probe/{nonce}"
        self._other_key = f"probe/{nonce}-other"

    async def check_conditions(self) -> Object:
        """Every write that must be refused names a version that the store itself gave out: some servers refuse
        a malformed one without comparing it."""
        first = await self._create(self._key, "first")
        other = await self._create(self._other_key, "other")
        await self._refused("create of a key that exists", lambda: self._store.create(self._key, self._data("twice")))
        await self._refused("replace at another object's version", lambda: self._replace("wrong", other))
        second = await self._accepted(
            self._key, self._data("second"), lambda: self._store.replace(self._key, self._data("second"), first)
        )
        await self._refused("replace at a version that is over", lambda: self._replace("stale", first))
        found = await self._store.get(self._key)
        if found is None or found.data != self._data("second") or found.version != second:
            raise StoreError("the store does not show what was just written to it: bucketq can't be safe on it")
        await self._store.delete(self._key)
        await self._refused("replace of a deleted object", lambda: self._replace("deleted", second))
        return found

    async def clean_up(self) -> None:
        """Never in the way of what the probe found; an object that stays is listed by nobody."""
        with contextlib.suppress(StoreError, OutcomeUnknown):
            await self._store.delete(self._key)
            await self._store.delete(self._other_key)

    def _data(self, step: str) -> bytes:
        # unique, as a version may be a hash of the content
        return f"bucketq looks whether this store keeps conditions: {step} {self._nonce}\n".encode()

    async def _create(self, key: str, step: str) -> Version:
        return await self._accepted(key, self._data(step), lambda: self._store.create(key, self._data(step)))

    async def _replace(self, step: str, version: Version) -> Version:
        return await self._store.replace(self._key, self._data(step), version)

    async def _accepted(self, key: str, data: bytes, write: Write) -> Version:
        try:
            return await _answer(write)
        except Conflict as conflict:
            # an earlier attempt, or a request that the network doubled, may have been the one that landed
            found = await self._store.get(key)
            if found is not None and found.data == data:
                return found.version
            raise StoreError(f"the store refused a write whose condition held: {conflict}", conflict) from conflict

    async def _refused(self, condition: str, write: Write) -> None:
        try:
            await _answer(write)
        except Conflict:
            return
        raise StoreError(
            f"the store accepted a {condition}: it ignores this condition, and bucketq can't be safe on it. "
            "Use a store with conditional writes"
        )


async def _answer(write: Write) -> Version:
    cause: OutcomeUnknown | None = None
    for _ in range(_ATTEMPTS):
        try:
            return await write()
        except OutcomeUnknown as unknown:
            cause = unknown
    raise StoreError(f"the store gave no definite answer to {_ATTEMPTS} conditional writes: {cause}", cause)


def _check_clock(store_us: int, own_us: int, skew_max_s: float) -> None:
    ahead_s = (own_us - store_us) / SECOND_US
    if abs(ahead_s) > skew_max_s:
        raise SettingInvalid(
            f"this machine's clock is {abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} the store's; "
            f"clock_skew_max is {skew_max_s:g} s. Set the clock (NTP), or raise clock_skew_max everywhere"
        )
