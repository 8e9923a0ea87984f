"""What every store must do. A new store takes one line in BUCKETS."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from bucketq.errors import Conflict, SettingInvalid
from bucketq.store import FileStore, MemoryStore, Store

T = TypeVar("T")
Opener = Callable[[], Store]
"""Opens the bucket of the test: each call for another user of it, in this process or thread."""


def memory_bucket(_: Path) -> Opener:
    store = MemoryStore()
    return lambda: store


def file_bucket(folder: Path) -> Opener:
    return lambda: FileStore(folder / "bucket")


BUCKETS: dict[str, Callable[[Path], Opener]] = {
    "memory": memory_bucket,
    "file": file_bucket,
}


@pytest.fixture(params=BUCKETS)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    return BUCKETS[request.param](tmp_path)


@pytest.fixture
async def store(opener: Opener) -> AsyncIterator[Store]:
    opened = opener()
    yield opened
    await opened.close()


@pytest.fixture
async def other(opener: Opener) -> AsyncIterator[Store]:
    opened = opener()
    yield opened
    await opened.close()


async def keys(store: Store, prefix: str = "", after: str = "") -> list[str]:
    return [key async for key in store.list(prefix, after)]


async def data_of(store: Store, key: str) -> bytes | None:
    found = await store.get(key)
    return found and found.data


def test_a_store_keeps_the_protocol(opener):
    assert isinstance(opener(), Store)


async def test_what_was_created_is_read_back_with_its_version_and_a_time(store):
    version = await store.create("queue.json", b"{}")
    found = await store.get("queue.json")
    assert (found.data, found.version) == (b"{}", version)
    assert found.modified_us > 1_500_000_000_000_000


async def test_an_absent_object_is_none(store):
    assert await store.get("queue.json") is None
    assert await store.get("log/1") is None
    await store.create("log/1", b"x")
    assert await store.get("log") is None
    assert await store.get("log/1/2") is None


async def test_a_second_create_conflicts_and_changes_nothing(store):
    version = await store.create("queue.json", b"first")
    with pytest.raises(Conflict):
        await store.create("queue.json", b"second")
    with pytest.raises(Conflict):
        await store.create("queue.json", b"first")
    assert (await store.get("queue.json"))[:2] == (b"first", version)


async def test_every_replace_gives_a_new_version_and_ends_the_old_ones(store):
    versions = [await store.create("queue.json", b"0")]
    for n in range(1, 5):
        versions.append(await store.replace("queue.json", str(n).encode(), versions[-1]))
    assert len(set(versions)) == 5
    for over in versions[:-1]:
        with pytest.raises(Conflict):
            await store.replace("queue.json", b"late", over)
    assert await data_of(store, "queue.json") == b"4"


async def test_a_replace_at_another_objects_version_conflicts(store):
    await store.create("queue.json", b"mine")
    version = await store.create("other", b"other")
    with pytest.raises(Conflict):
        await store.replace("queue.json", b"late", version)
    assert await data_of(store, "queue.json") == b"mine"


async def test_a_replace_of_a_deleted_object_conflicts_and_does_not_bring_it_back(store):
    version = await store.create("queue.json", b"x")
    await store.delete("queue.json")
    with pytest.raises(Conflict):
        await store.replace("queue.json", b"y", version)
    assert await store.get("queue.json") is None


async def test_a_deleted_key_can_be_created_again(store):
    await store.create("log/1", b"x")
    await store.delete("log/1")
    await store.delete("log/1")
    await store.delete("never/was")
    assert await keys(store) == []
    await store.create("log/1", b"y")
    assert await data_of(store, "log/1") == b"y"


@pytest.mark.parametrize("data", [b"", b"\0" * 3, random.Random(1).randbytes(5 * 1024 * 1024)], ids=len)
async def test_data_of_any_size_comes_back_whole(store, data):
    version = await store.create("a/b", data)
    assert (await store.get("a/b"))[:2] == (data, version)
    await store.replace("a/b", data + b"more", version)
    assert await data_of(store, "a/b") == data + b"more"


async def test_keys_are_listed_in_ascending_order_by_prefix_and_after(store):
    # "-" and "." sort before "/", "0" after it: a walk of folders by name would get this wrong
    unsorted = [
        "a0",
        "a/b",
        "ab",
        "a-b",
        "a/b.c/d",
        "a.b",
        "a/b-c",
        "b/c/d/e/f/g/h/i",
        "é/ü",
        "b/c-",
        "log/2",
        "log/10",
    ]
    for key in unsorted:
        await store.create(key, key.encode())
    everything = sorted(unsorted)
    assert await keys(store) == everything
    for prefix in ["", "a", "a/", "a/b", "a/b.", "b/c", "b/c/", "b/c/d/e", "log/", "lo", "x", "x/y/", "é/"]:
        for after in ["", *everything, "a/", "a/b0", "b", "log", "zz"]:
            wanted = [key for key in everything if key.startswith(prefix) and key > after]
            assert await keys(store, prefix, after) == wanted, (prefix, after)


@pytest.mark.parametrize("key", ["", "/", "/etc/passwd", "a//b", "a/", "..", "a/../b", ".", "a/.b", "a\0b", "x" * 256])
async def test_a_bad_key_is_refused_by_every_call(store, key):
    calls: list[Coroutine[Any, Any, object]] = [
        store.get(key), store.create(key, b""), store.replace(key, b"", "0"), store.delete(key)
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(SettingInvalid):
            await call


async def test_a_prefix_cannot_leave_the_store(store):
    with pytest.raises(SettingInvalid):
        await keys(store, "../")


@pytest.mark.parametrize("seed", range(3))
async def test_any_sequence_of_calls_does_what_a_dict_would(store, other, seed):
    rng = random.Random(seed)
    model: dict[str, tuple[bytes, str]] = {}
    seen = ["0" * 32]
    for step in range(120):
        one = rng.choice([store, other])
        key, data = rng.choice(["queue.json", "log/1", "log/2", "log/x/y"]), f"{seed} {step}".encode()
        match rng.choice(["create", "replace", "replace", "delete", "get"]):
            case "create" if key in model:
                with pytest.raises(Conflict):
                    await one.create(key, data)
            case "create":
                model[key] = data, await one.create(key, data)
                seen.append(model[key][1])
            case "replace":
                version = rng.choice([model.get(key, (b"", seen[0]))[1], rng.choice(seen)])
                if key in model and model[key][1] == version:
                    model[key] = data, await one.replace(key, data, version)
                    seen.append(model[key][1])
                else:
                    with pytest.raises(Conflict):
                        await one.replace(key, data, version)
            case "delete":
                await one.delete(key)
                model.pop(key, None)
            case "get":
                found = await one.get(key)
                assert (found and found[:2]) == model.get(key)
        assert await keys(one) == sorted(model)


async def test_of_many_tasks_that_create_one_key_exactly_one_wins(store):
    results = await asyncio.gather(
        *(store.create("log/1", f"{n}".encode()) for n in range(20)), return_exceptions=True
    )  # fmt: skip
    winners = [n for n, result in enumerate(results) if not isinstance(result, Conflict)]
    assert len(winners) == 1
    assert (await store.get("log/1"))[:2] == (f"{winners[0]}".encode(), results[winners[0]])


async def test_of_many_tasks_that_replace_one_version_exactly_one_wins(store):
    version = await store.create("queue.json", b"start")
    results = await asyncio.gather(
        *(store.replace("queue.json", f"{n}".encode(), version) for n in range(20)), return_exceptions=True
    )
    winners = [n for n, result in enumerate(results) if not isinstance(result, Conflict)]
    assert len(winners) == 1
    assert (await store.get("queue.json"))[:2] == (f"{winners[0]}".encode(), results[winners[0]])


async def increment(store: Store, times: int) -> None:
    for _ in range(times):
        while True:
            found = await store.get("counter")
            assert found is not None
            try:
                await store.replace("counter", str(int(found.data) + 1).encode(), found.version)
                break
            except Conflict:
                pass


async def test_a_counter_that_many_tasks_increment_loses_nothing(store, other):
    await store.create("counter", b"0")
    await asyncio.gather(*(increment(one, 15) for one in [store, other] * 3))
    assert await data_of(store, "counter") == b"90"


async def in_threads(count: int, opener: Opener, act: Callable[[Store, int], Coroutine[Any, Any, T]]) -> list[T]:
    """Each in a thread with an event loop and a store of its own, all let go at once."""
    barrier = threading.Barrier(count)

    async def run(n: int) -> T:
        store = opener()
        try:
            await store.get("warm-up")
            barrier.wait()
            return await act(store, n)
        finally:
            await store.close()

    return await asyncio.gather(*(asyncio.to_thread(asyncio.run, run(n)) for n in range(count)))


async def test_of_threads_that_create_one_key_exactly_one_wins(opener, store):
    async def create(store: Store, n: int) -> list[int]:
        won = []
        for slot in range(20):
            try:
                await store.create(f"log/{slot}", f"{n}".encode())
                won.append(slot)
            except Conflict:
                pass
        return won

    won = await in_threads(4, opener, create)
    assert sorted(slot for slots in won for slot in slots) == list(range(20))
    for n, slots in enumerate(won):
        assert [await data_of(store, f"log/{slot}") for slot in slots] == [f"{n}".encode()] * len(slots)


async def test_of_threads_that_replace_one_version_exactly_one_wins(opener, store):
    version = await store.create("queue.json", b"start")

    async def replace(store: Store, n: int) -> bool:
        try:
            await store.replace("queue.json", f"{n}".encode(), version)
            return True
        except Conflict:
            return False

    won = await in_threads(6, opener, replace)
    assert won.count(True) == 1
    assert await data_of(store, "queue.json") == f"{won.index(True)}".encode()


async def test_a_counter_that_threads_increment_loses_nothing(opener, store):
    await store.create("counter", b"0")
    await in_threads(4, opener, lambda store, n: increment(store, 25))
    assert await data_of(store, "counter") == b"100"


@pytest.fixture
async def caught_up(store: Store) -> Store:
    """A store that has heard of all that happened so far."""
    await store.create("before", b"")
    await store.changed()
    return store


async def test_a_write_by_another_wakes_a_waiter(caught_up, other):
    waiter = asyncio.create_task(caught_up.changed())
    await asyncio.sleep(0)
    version = await other.create("queue.json", b"1")
    await waiter
    waiter = asyncio.create_task(caught_up.changed())
    await asyncio.sleep(0)
    await other.replace("queue.json", b"2", version)
    await waiter


@pytest.mark.parametrize("key", ["queue.json", "log/1"])
async def test_a_change_between_two_calls_is_not_lost(caught_up, other, key):
    await other.create(key, b"x")
    await caught_up.changed()


async def test_a_change_wakes_every_waiter(caught_up, other):
    waiters = [asyncio.create_task(caught_up.changed()) for _ in range(3)]
    await asyncio.sleep(0)
    await other.create("log/1", b"x")
    await asyncio.gather(*waiters)


async def test_each_lasting_task_hears_of_a_change_that_another_has_heard_of(caught_up, other):
    busy, go_on = asyncio.Event(), asyncio.Event()

    async def follow() -> None:
        await caught_up.changed()
        busy.set()
        await go_on.wait()
        await caught_up.changed()

    slow = asyncio.create_task(follow())
    await asyncio.sleep(0)
    await other.create("log/1", b"x")
    await busy.wait()
    await caught_up.changed()
    await other.create("log/2", b"x")
    await caught_up.changed()
    go_on.set()
    await slow


async def test_a_cancelled_waiter_takes_nothing_from_the_others(caught_up, other):
    waiters = [asyncio.create_task(caught_up.changed()) for _ in range(2)]
    await asyncio.sleep(0)
    waiters[0].cancel()
    await asyncio.gather(waiters[0], return_exceptions=True)
    await other.create("log/1", b"x")
    await waiters[1]
    assert waiters[0].cancelled()


async def test_a_write_in_another_thread_wakes_a_waiter(opener, caught_up):
    async def create(store: Store, n: int) -> None:
        await store.create(f"log/{n}", b"x")

    waiter = asyncio.create_task(caught_up.changed())
    await asyncio.sleep(0)
    await in_threads(1, opener, create)
    await waiter


async def test_closing_twice_is_fine(opener):
    store = opener()
    await store.create("queue.json", b"x")
    await store.close()
    await store.close()
