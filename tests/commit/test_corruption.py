"""What is damaged is named, and never overwritten, and never taken for an empty queue."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from bucketq import Client, Queue, StateCorrupt
from bucketq.journal.archive import compress
from bucketq.journal.layout import segment_key
from bucketq.testing import Clock
from bucketq.testing.faults import Damage
from tests.commit.support import Bucket, sealed

DAMAGES: list[Damage] = ["truncate", "flip", "empty", "garbage"]


async def every_call_fails(bucket: Bucket, client: Client) -> None:
    queue = client.queue("q")
    calls: list[Any] = [
        lambda: queue.push("new"),
        queue.stats,
        queue.claim,
        lambda: queue.claim(wait=5),
        queue.jobs,
        queue.purge,
        client.upkeep,
    ]
    for call in calls * 2:
        with pytest.raises(StateCorrupt, match=r"^queue\.json: ") as caught:
            await bucket.run(call())
        assert caught.value.key == "queue.json"


class TestQueueJson:
    @pytest.mark.parametrize("how", DAMAGES)
    async def test_that_is_damaged_can_not_be_opened(self, any_bucket: Bucket, how: Damage):
        await (await any_bucket.connect()).queue("q").push("there")
        await any_bucket.faulty.corrupt("queue.json", how)
        damaged = await any_bucket.content()
        for _ in range(2):
            with pytest.raises(StateCorrupt, match=r"^queue\.json: "):
                await any_bucket.other()
        assert await any_bucket.content() == damaged

    @pytest.mark.parametrize("how", DAMAGES)
    async def test_that_is_damaged_while_a_client_runs(
        self, bucket: Bucket, client: Client, queue: Queue[Any], how: Damage
    ):
        await queue.push("there")
        await bucket.faulty.corrupt("queue.json", how)
        damaged = await bucket.content()
        await every_call_fails(bucket, client)
        await bucket.clock.advance(120)
        assert await bucket.content() == damaged

    @pytest.mark.parametrize("at", [0, 1, 10, 25, 40, 59, 60, 100, -2, -1])
    async def test_of_which_one_bit_is_wrong(self, bucket: Bucket, queue: Queue[Any], at: int):
        await queue.push("there")
        await bucket.faulty.corrupt("queue.json", "flip", at=at % len(await bucket.content()))
        with pytest.raises(StateCorrupt):
            await bucket.other()

    async def test_of_a_newer_format_asks_for_an_upgrade(self, bucket: Bucket, client: Client, queue: Queue[Any]):
        await queue.push("there")
        newer = re.sub(rb'^\{"format":1', b'{"format":2', await bucket.content())
        await bucket.put(newer)
        with pytest.raises(StateCorrupt, match="upgrade"):
            await bucket.other()
        with pytest.raises(StateCorrupt, match="upgrade"):
            await queue.push("new")
        await bucket.run(client.close())
        assert await bucket.content() == newer

    async def test_that_is_gone_is_no_empty_queue(self, bucket: Bucket, client: Client, queue: Queue[Any]):
        await queue.push("there")
        await bucket.inner.delete("queue.json")
        await every_call_fails(bucket, client)
        assert await bucket.inner.get("queue.json") is None

    @pytest.mark.parametrize("how", ["damaged", "gone"])
    async def test_that_was_restored_is_as_it_was(self, bucket: Bucket, client: Client, queue: Queue[Any], how: str):
        """What the callers were told had failed, is not there; and the client goes on."""
        job = await queue.push("there")
        good = await bucket.content()
        if how == "gone":
            await bucket.inner.delete("queue.json")
        else:
            await bucket.faulty.corrupt("queue.json", "truncate")
        with pytest.raises(StateCorrupt):
            await queue.push("never")
        if how == "gone":
            await bucket.inner.create("queue.json", good)
        else:
            await bucket.put(good)
        assert [found.id for found in await queue.jobs()] == [job.id]
        await queue.push("next")
        assert [found.payload for found in await (await bucket.other()).queue("q").jobs()] == ["there", "next"]

    async def test_that_contradicts_itself_is_not_overwritten(self, bucket: Bucket, client: Client, queue: Queue[Any]):
        """Its checksum is right, but it names a queue that it does not have: some other program wrote it."""
        await queue.push("there")
        body = (await bucket.content()).split(b"\n", 1)[1].replace(b'"queue":"q"', b'"queue":"z"')
        await bucket.put(sealed(body))
        damaged = await bucket.content()
        with pytest.raises(StateCorrupt, match="contradicts"):
            await bucket.other()
        await every_call_fails(bucket, client)
        assert await bucket.content() == damaged

    async def test_that_is_damaged_is_not_waited_for(self, bucket: Bucket, queue: Queue[Any], clock: Clock):
        """Who waits for a job hears of it, at the latest when its time is over: never that there is none."""
        await queue.push("taken")
        await queue.claim()
        waiting = asyncio.create_task(queue.claim(wait=30))
        await clock.settle()
        await bucket.faulty.corrupt("queue.json", "truncate")
        await clock.advance(31)
        with pytest.raises(StateCorrupt):
            waiting.result()


class TestASegmentThatIsThereWithOtherContent:
    @pytest.fixture
    async def key(self, bucket: Bucket, queue: Queue[Any]) -> str:
        await queue.push("work")
        (claim,) = await queue.claim()
        await claim.complete()
        return segment_key("2026-01-01T00", 1)

    @pytest.mark.parametrize("content", [b"garbage", b"", compress(b'{"other":"records"}\n'), compress(b"")])
    async def test_it_is_named_and_nothing_is_overwritten_or_dropped(
        self, bucket: Bucket, client: Client, queue: Queue[Any], key: str, content: bytes
    ):
        await bucket.inner.create(key, content)
        with pytest.raises(StateCorrupt) as caught:
            await bucket.run(client.upkeep())
        assert caught.value.key == key
        await bucket.clock.advance(120)
        found = await bucket.inner.get(key)
        assert found is not None
        assert found.data == content
        assert (await queue.stats()).done == 1
        assert len((await bucket.document()).jobs) == 1
        await queue.push("the queue goes on")

    async def test_once_it_is_out_of_the_way_sealing_goes_on(self, bucket: Bucket, client: Client, key: str):
        await bucket.inner.create(key, b"garbage")
        with pytest.raises(StateCorrupt):
            await bucket.run(client.upkeep())
        await bucket.inner.delete(key)
        await bucket.clock.advance(5)
        assert len(await bucket.records()) == 1
        assert (await bucket.document()).jobs == []
