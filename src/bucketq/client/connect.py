"""From a URL, or a store, to a client."""

from __future__ import annotations

from collections.abc import Generator
from types import TracebackType
from typing import Unpack

from bucketq.client.client import Client
from bucketq.clock import Clock, SystemClock
from bucketq.commit import open_committer
from bucketq.errors import BrokerUnavailable, SettingInvalid
from bucketq.settings import Options, Settings, shown
from bucketq.store import Store, open_store
from bucketq.store.probe import probe

_REMOTE = ("http://", "https://", "grpc://", "grpcs://")


def connect(url: str | Store, *, clock: Clock | None = None, **settings: Unpack[Options]) -> Opening:
    """A client for a bucket: `async with connect(url) as client:`, or `client = await connect(url)` and, at the end,
    `await client.close()`.

    `url` is `memory://name`, `file:///dir`, or a `Store` of your own, which stays yours to close. Settings not given
    here come from `BUCKETQ_<NAME>` variables. Raises `SettingInvalid`; and, once opened, `StoreError` if the store
    can't be used, `StateCorrupt`, and `BrokerUnavailable` if `mode="broker"` and none runs.
    """
    return Opening(_checked_target(url), Settings.checked(**settings), clock or SystemClock())


class Opening:
    """A client that is about to be opened: await it, or enter it with `async with`."""

    def __init__(self, target: str | Store, settings: Settings, clock: Clock) -> None:
        self._target = target
        self._settings = settings
        self._clock = clock
        self._client: Client | None = None

    def __await__(self) -> Generator[object, None, Client]:
        return self._open().__await__()

    async def __aenter__(self) -> Client:
        self._client = await self._open()
        return self._client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()

    async def _open(self) -> Client:
        if self._settings.mode == "broker":
            raise BrokerUnavailable('no broker runs for this bucket; mode="auto" or "direct" commits without one')
        if not isinstance(self._target, str):
            return await self._open_on(self._target, owned=False)
        store = open_store(self._target)
        try:
            return await self._open_on(store, owned=True)
        except BaseException:
            await store.close()
            raise

    async def _open_on(self, store: Store, owned: bool) -> Client:
        settings, clock = self._settings, self._clock
        if settings.probe:
            await probe(store, wall_us=clock.wall_us, clock_skew_max_s=settings.clock_skew_max_s)
        port = await open_committer(store, settings, clock=clock)
        return Client(port, settings, clock, store.close if owned else None)


def _checked_target(target: object) -> str | Store:
    if isinstance(target, str):
        if target.lower().startswith(_REMOTE):
            raise SettingInvalid(f"{target.partition('://')[0]}:// is not available in this version: use a storage URL")
        return target
    if isinstance(target, Store):
        return target
    raise SettingInvalid(f"connect takes a URL (text) or a Store; got {shown(target)}")
