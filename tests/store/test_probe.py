"""The probe trusts stores that keep conditions, and no others."""

from __future__ import annotations

import time
from collections import defaultdict

import pytest

from bucketq.errors import Conflict, OutcomeUnknown, SettingInvalid, StoreError
from bucketq.store import FileStore, MemoryStore, Object, Store, Version, probe


def wall_us() -> int:
    return time.time_ns() // 1_000


async def run_probe(store: Store, ahead_s: float = 0.0) -> None:
    await probe(store, wall_us=lambda: wall_us() + int(ahead_s * 1_000_000), clock_skew_max_s=600.0)


class Careless(MemoryStore):
    """A store that ignores one condition."""

    def __init__(self, ignored: str) -> None:
        super().__init__()
        self._ignored = ignored
        self._given: defaultdict[str, set[Version]] = defaultdict(set)

    async def create(self, key: str, data: bytes) -> Version:
        if self._ignored == "create of a key that exists":
            await self.delete(key)
        return self._note(key, await super().create(key, data))

    async def replace(self, key: str, data: bytes, version: Version) -> Version:
        found = await self.get(key)
        if self._accepts(found is not None, version in self._given[key]):
            await self.delete(key)
            return self._note(key, await super().create(key, data))
        return self._note(key, await super().replace(key, data, version))

    def _accepts(self, exists: bool, was_given: bool) -> bool:
        match self._ignored:
            case "replace at another object's version":
                return exists and not was_given
            case "replace at a version that is over":
                return exists and was_given
            case "replace of a deleted object":
                return not exists
        return False

    def _note(self, key: str, version: Version) -> Version:
        self._given[key].add(version)
        return version


class Deaf(MemoryStore):
    """A store whose answers to the first `lost` writes are lost, though it heeds them."""

    def __init__(self, lost: int) -> None:
        super().__init__()
        self._lost = lost

    async def create(self, key: str, data: bytes) -> Version:
        return self._lose(await super().create(key, data))

    async def replace(self, key: str, data: bytes, version: Version) -> Version:
        return self._lose(await super().replace(key, data, version))

    def _lose(self, version: Version) -> Version:
        if self._lost:
            self._lost -= 1
            raise OutcomeUnknown("the connection was reset")
        return version


class Mute(MemoryStore):
    """A store that never answers a write."""

    async def create(self, key: str, data: bytes) -> Version:
        raise OutcomeUnknown("timeout")


class Behind(MemoryStore):
    """A store that keeps conditions, but shows an object as it was created."""

    def __init__(self) -> None:
        super().__init__()
        self._created: dict[str, Object | None] = {}

    async def create(self, key: str, data: bytes) -> Version:
        version = await super().create(key, data)
        self._created[key] = await super().get(key)
        return version

    async def get(self, key: str) -> Object | None:
        return self._created.get(key)


class Stubborn(MemoryStore):
    """A store that refuses every replace."""

    async def replace(self, key: str, data: bytes, version: Version) -> Version:
        raise Conflict(key)


async def left_behind(store: Store) -> list[str]:
    return [key async for key in store.list("")]


async def test_a_memory_store_is_accepted_and_left_empty():
    store = MemoryStore()
    await run_probe(store)
    await run_probe(store)
    assert await left_behind(store) == []


async def test_a_file_store_is_accepted_and_left_empty(tmp_path):
    store = FileStore(tmp_path)
    await run_probe(store)
    assert await left_behind(store) == []
    await store.close()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


@pytest.mark.parametrize(
    "condition",
    [
        "create of a key that exists",
        "replace at another object's version",
        "replace at a version that is over",
        "replace of a deleted object",
    ],
)
async def test_a_store_that_ignores_a_condition_is_refused_by_name_of_the_condition(condition):
    store = Careless(condition)
    with pytest.raises(StoreError, match=f"accepted a {condition}.*can't be safe"):
        await run_probe(store)
    assert await left_behind(store) == []


async def test_the_careless_store_is_accepted_once_it_ignores_nothing():
    await run_probe(Careless("nothing"))


async def test_a_store_that_shows_what_is_over_is_refused():
    with pytest.raises(StoreError, match="does not show what was just written"):
        await run_probe(Behind())


async def test_a_store_that_refuses_a_write_whose_condition_held_is_refused():
    with pytest.raises(StoreError, match="refused a write whose condition held"):
        await run_probe(Stubborn())


@pytest.mark.parametrize("lost", [1, 2, 3])
async def test_lost_answers_are_asked_for_again(lost):
    store = Deaf(lost)
    await run_probe(store)
    assert await left_behind(store) == []


async def test_a_store_that_never_answers_is_refused():
    with pytest.raises(StoreError, match="no definite answer") as refused:
        await run_probe(Mute())
    assert isinstance(refused.value.cause, OutcomeUnknown)


@pytest.mark.parametrize(("ahead_s", "said"), [(900, "900 s ahead of"), (-900, "900 s behind")])
async def test_a_wall_clock_far_from_the_stores_is_refused_with_the_distance(ahead_s, said):
    store = MemoryStore()
    with pytest.raises(SettingInvalid, match=f"{said} the store's; clock_skew_max is 600 s"):
        await run_probe(store, ahead_s)
    assert await left_behind(store) == []


async def test_a_wall_clock_within_the_limit_is_accepted():
    await run_probe(MemoryStore(), ahead_s=500)
    await probe(MemoryStore(), wall_us=wall_us(), clock_skew_max_s=600.0)


async def test_two_probes_at_once_do_not_meet():
    store = MemoryStore()
    await probe(store, wall_us=wall_us, clock_skew_max_s=600.0, nonce="one")
    await probe(store, wall_us=wall_us, clock_skew_max_s=600.0, nonce="two")
    assert await left_behind(store) == []
