"""Endings become history: sealed by a commit, written to the archive, and only then dropped."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bucketq import Client, Queue, StoreError
from bucketq.testing import Clock, Fault
from tests.commit.support import Bucket


async def end(queue: Queue[Any], count: int = 1) -> list[str]:
    """Push, claim and complete."""
    await queue.push_many(range(count))
    claims = await queue.claim(count)
    assert await queue.complete_many(claims) == [None] * count
    return [claim.job.id for claim in claims]


class TestIsDue:
    async def test_after_a_minute(self, bucket: Bucket, queue: Queue[Any], clock: Clock):
        first = await end(queue)
        await clock.advance(30)
        second = await end(queue)
        await clock.advance(29)
        assert await bucket.segments() == {}
        await clock.advance(1.5)
        assert [record.id for record in await bucket.records()] == first + second
        assert (await bucket.document()).jobs == []

    async def test_after_ten_thousand(self, bucket: Bucket, clock: Clock):
        queue = (await bucket.connect(inline_bytes_max=1 << 30)).queue("q")
        await end(queue, 9_999)
        await clock.advance(1)
        assert await bucket.segments() == {}
        await end(queue)
        await clock.advance(1)
        assert {k: len(records) for k, records in (await bucket.segments()).items()} == {1: 10_000}

    async def test_after_so_many_bytes(self, bucket: Bucket):
        """At most a quarter of what may be inline."""
        queue = (await bucket.connect(inline_bytes_max=40_000)).queue("q")
        for number in range(5):
            await queue.push("x" * 2_000)
            (claim,) = await queue.claim()
            await claim.complete()
            await bucket.clock.settle()
            assert len(await bucket.segments()) == (1 if number == 4 else 0)

    async def test_at_a_clean_close(self, bucket: Bucket, client: Client, queue: Queue[Any]):
        ids = await end(queue, 3)
        await bucket.run(client.close())
        assert [record.id for record in await bucket.records()] == ids
        assert (await bucket.document()).jobs == []

    async def test_by_upkeep(self, bucket: Bucket, client: Client, queue: Queue[Any]):
        ids = await end(queue, 3)
        await bucket.run(client.upkeep())
        assert [record.id for record in await bucket.records()] == ids
        assert (await bucket.document()).jobs == []
        await bucket.run(client.upkeep())
        assert len(await bucket.segments()) == 1

    async def test_in_whoever_runs_when_who_ended_it_is_gone(self, bucket: Bucket, clock: Clock):
        other = await bucket.other()
        mortal = await bucket.connect()
        ids = await end(mortal.queue("q"))
        bucket.faulty.crash()
        assert (await other.queue("q").stats()).done == 1
        await clock.advance(61)
        assert [record.id for record in await bucket.records()] == ids

    async def test_by_two_at_once_is_done_once(self, bucket: Bucket, clock: Clock):
        clients = [await bucket.connect() for _ in range(3)]
        for client in clients:
            await end(client.queue("q"), 2)
        await asyncio.gather(*(bucket.run(client.upkeep()) for client in clients))
        assert len(await bucket.records()) == 6
        assert (await bucket.document()).jobs == []
        await bucket.state()


class TestTheArchive:
    async def test_the_folder_is_the_hour_of_the_seal(
        self, bucket: Bucket, client: Client, queue: Queue[Any], clock: Clock
    ):
        await clock.advance(3_599)
        await end(queue)
        await clock.advance(5)
        await bucket.run(client.upkeep())
        await clock.advance(86_400)
        await end(queue)
        await bucket.run(client.upkeep())
        assert [key async for key in bucket.inner.list("archive/")] == [
            "archive/2026-01-01T01/00000000000000000001.ndjson.zst",
            "archive/2026-01-02T01/00000000000000000002.ndjson.zst",
        ]

    @pytest.mark.parametrize("fault", [Fault.REPLY_LOST, Fault.REQUEST_LOST, Fault.DUPLICATED, Fault.LATE])
    async def test_a_segment_is_written_once_whatever_happens_to_the_request(
        self, bucket: Bucket, client: Client, queue: Queue[Any], fault: Fault
    ):
        ids = await end(queue, 3)
        bucket.faulty.next("create", fault, key="archive/*")
        await bucket.run(client.upkeep())
        await bucket.faulty.deliver_late()
        assert [record.id for record in await bucket.records()] == ids
        assert (await bucket.document()).jobs == []

    async def test_nobody_sees_the_next_before_the_one_under_way_is_there(
        self, bucket: Bucket, client: Client, queue: Queue[Any]
    ):
        held = bucket.hold("create", key="archive/*")
        first = await end(queue)
        keeping = asyncio.create_task(client.upkeep())
        await held.arrived()
        second = await end(queue)
        await bucket.clock.advance(70)
        other = await bucket.other()
        assert (await other.queue("q").stats()).done == 2
        assert (await bucket.document()).root.next_k == 2
        held.release()
        await bucket.run(keeping)
        assert {k: [record.id for record in records] for k, records in (await bucket.segments()).items()} == {
            1: first,
            2: second,
        }

    async def test_a_segment_that_was_never_committed_is_never_written(self, bucket: Bucket, clock: Clock):
        """The open batch seals, a timer of the last failure goes off meanwhile, and another client seals first."""
        client = await bucket.connect()
        queue = client.queue("q")
        other = await bucket.other()
        await end(queue)
        bucket.faulty.next("create", Fault.ERROR, key="archive/*")
        with pytest.raises(StoreError):
            await bucket.run(client.upkeep())  # segment 1 is sealed; the next try is in a second
        await bucket.run(other.upkeep())  # somebody else writes and drops it
        await end(queue)
        held = bucket.hold("write")
        keeping = asyncio.create_task(client.upkeep())
        await held.arrived()  # seals segment 2
        await clock.advance(1.5)
        await end(other.queue("q"), 2)
        await bucket.run(other.upkeep())  # seals segment 2 as well, with more in it, and is first
        held.release()
        await bucket.run(keeping)
        assert len(await bucket.records()) == 4
        await bucket.state()

    async def test_pruning_deletes_whole_segments_from_the_low_end(self, bucket: Bucket, clock: Clock):
        client = await bucket.connect(archive_retention=7_200)
        for _ in range(5):
            await end(client.queue("q"))
            await bucket.run(client.upkeep())
            await clock.advance(3_600)
        await bucket.run(client.upkeep())
        kept = await bucket.segments()
        root = (await bucket.document()).root
        assert list(kept) == [4, 5]
        assert (root.first_k, root.next_k) == (4, 6)

    async def test_without_a_retention_nothing_is_pruned(self, bucket: Bucket, client: Client, clock: Clock):
        await end(client.queue("q"))
        await bucket.run(client.upkeep())
        await clock.advance(400 * 86_400)
        await bucket.run(client.upkeep())
        assert list(await bucket.segments()) == [1]

    async def test_pruning_leaves_alone_what_is_no_segment(self, bucket: Bucket, clock: Clock):
        client = await bucket.connect(archive_retention=0)
        await end(client.queue("q"))
        await bucket.run(client.upkeep())
        strays = ["archive/2020/old.txt", "archive/backup/00000000000000000001.ndjson.zst", "archive/readme"]
        for key in strays:
            await bucket.inner.create(key, b"not ours")
        await clock.advance(7_200)
        await bucket.run(client.upkeep())
        assert [key async for key in bucket.inner.list("archive/")] == strays

    async def test_a_pruning_that_stops_half_way_goes_on(self, bucket: Bucket, clock: Clock):
        client = await bucket.connect(archive_retention=0)
        for _ in range(3):
            await end(client.queue("q"))
            await bucket.run(client.upkeep())
        await clock.advance(7_200)
        bucket.faulty.next("delete", Fault.ERROR, times=10)
        with pytest.raises(StoreError):
            await bucket.run(client.upkeep())
        assert (await bucket.document()).root.first_k == 4
        assert list(await bucket.segments()) == [1, 2, 3]
        bucket.faulty.heal()
        await bucket.run(client.upkeep())
        assert await bucket.segments() == {}
        await end(client.queue("q"))
        await bucket.run(client.upkeep())
        assert list(await bucket.segments()) == [4]
