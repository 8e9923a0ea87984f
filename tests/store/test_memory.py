"""What only the memory store promises."""

from __future__ import annotations

import asyncio

from bucketq.clock import SystemClock
from bucketq.store import MemoryStore, memory_store


class StoppedClock(SystemClock):
    def wall_us(self) -> int:
        return 1_700_000_000_000_000


async def test_objects_carry_the_time_of_the_clock_passed_in():
    store = MemoryStore(StoppedClock())
    await store.create("queue.json", b"x")
    found = await store.get("queue.json")
    assert found is not None
    assert found.modified_us == 1_700_000_000_000_000


def test_a_name_names_one_store_per_process():
    assert memory_store("shared") is memory_store("shared")
    assert memory_store("shared") is not memory_store("other")


def test_without_a_name_a_store_is_private():
    assert memory_store() is not memory_store("")


async def test_own_writes_wake_those_who_share_the_store():
    store = MemoryStore()
    waiter = asyncio.create_task(store.changed())
    await asyncio.sleep(0)
    assert not waiter.done()
    await store.create("queue.json", b"x")
    await waiter


async def test_a_store_goes_on_when_one_of_its_users_closes_it():
    store = MemoryStore()
    await store.create("queue.json", b"x")
    await store.close()
    assert await store.get("queue.json") is not None


async def test_a_waiter_whose_loop_has_ended_is_no_obstacle():
    store = MemoryStore()
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)  # it would complain of the task left behind

    async def wait() -> None:
        loop.call_soon(loop.stop)
        await store.changed()

    def abandon() -> asyncio.Task[None]:
        task = loop.create_task(wait())
        loop.run_forever()
        return task

    abandoned = await asyncio.to_thread(abandon)
    loop.close()
    await store.create("queue.json", b"x")
    await store.changed()
    assert not abandoned.done()
