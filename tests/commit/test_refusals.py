"""The store says no, definitely: nothing was written, and nothing is half done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bucketq import BucketqError, Client, LeaseLost, Queue, StoreError, StoreStopped
from bucketq.testing import Clock, Fault
from tests.commit.deeds import DEEDS
from tests.commit.support import Bucket


@pytest.mark.parametrize("kind", DEEDS)
@pytest.mark.parametrize("error", ["disk_full", "read_only", "throttled"])
async def test_the_caller_is_told_why_and_the_next_call_works(bucket: Bucket, client: Client, kind: str, error):
    deed = DEEDS[kind](client, bucket)
    await deed.prepare()
    before = await bucket.content() if kind != "push" else None
    bucket.faulty.next("write", Fault.ERROR, error=error)
    with pytest.raises(StoreError, match=error.replace("_", " ")) as caught:
        await bucket.run(deed.act())
    assert isinstance(caught.value.cause, OSError)
    assert before is None or await bucket.content() == before
    assert not await deed.was_done()
    await deed.check(await deed.act())
    await bucket.state()


async def test_reads_of_the_same_batch_are_answered_without_what_failed(
    bucket: Bucket, client: Client, queue: Queue[Any]
):
    job = await queue.push("there")
    (claim,) = await queue.claim()
    await claim.complete()
    bucket.faulty.next("write", Fault.ERROR, error="disk_full")
    pushing = asyncio.create_task(queue.push("new"))
    counting = asyncio.create_task(queue.stats())
    getting = asyncio.create_task(queue.get(job.id))
    claiming = asyncio.create_task(queue.claim())
    completing = asyncio.create_task(claim.complete())
    await asyncio.wait([pushing, counting, getting, claiming, completing])
    assert isinstance(pushing.exception(), StoreError)
    assert (counting.result().ready, counting.result().done) == (0, 1)
    assert getting.result().status == "done"
    assert isinstance(claiming.exception(), StoreError)  # it was given the job that was never stored
    assert isinstance(completing.exception(), LeaseLost)
    assert bucket.writes == 4


async def test_a_batch_of_many_fails_whole_and_stores_none(bucket: Bucket, queue: Queue[Any]):
    await queue.push("first")
    held = bucket.hold("write")
    bucket.faulty.next("write", Fault.ERROR, error="disk_full", skip=1)
    first = asyncio.create_task(queue.push("second"))
    await held.arrived()
    others = [asyncio.create_task(queue.push(n)) for n in range(20)]
    await bucket.clock.settle()
    held.release()
    await asyncio.wait([first, *others])
    assert first.exception() is None
    assert all(isinstance(each.exception(), StoreError) for each in others)
    assert [job.payload for job in await queue.jobs()] == ["first", "second"]
    assert [job.id[-2:] for job in await queue.push_many(["a", "b"])] == ["-3", "-4"]
    await bucket.state()


async def test_upkeep_tells_what_went_wrong_and_goes_on_by_itself(
    bucket: Bucket, client: Client, queue: Queue[Any], clock: Clock
):
    await queue.push("work")
    (claim,) = await queue.claim()
    await claim.complete()
    bucket.faulty.next("create", Fault.ERROR, key="archive/*", error="disk_full", times=3)
    with pytest.raises(StoreError, match="disk full"):
        await bucket.run(client.upkeep())
    assert (await bucket.document()).root.segment is not None
    await clock.advance(10)
    assert [record.id for record in await bucket.records()] == [claim.job.id]
    assert (await bucket.document()).jobs == []


class TestAStoreThatHasStopped:
    @pytest.fixture
    async def stopped(self, bucket: Bucket, queue: Queue[Any]) -> Queue[Any]:
        await queue.push("before")
        bucket.faulty.next("any", Fault.ERROR, error="stopped", times=10**9)
        return queue

    @pytest.mark.parametrize("_", range(2))
    async def test_every_call_says_so(self, bucket: Bucket, client: Client, stopped: Queue[Any], _: int):
        calls: list[Callable[[], Coroutine[Any, Any, Any]]] = [
            lambda: stopped.push("x"),
            stopped.claim,
            lambda: stopped.claim(wait=5),
            stopped.stats,
            stopped.jobs,
            lambda: stopped.get("nope"),
            stopped.pause,
            stopped.purge,
            client.upkeep,
        ]
        for call in calls:
            with pytest.raises(StoreStopped) as caught:
                await bucket.run(call())
            assert caught.value.outcome == "final"

    async def test_closing_works_all_the_same(self, bucket: Bucket, client: Client, stopped: Queue[Any]):
        await bucket.run(client.close())
        with pytest.raises(BucketqError, match="closed"):
            await stopped.push("x")

    async def test_in_doubt_it_stays_unknown(self, bucket: Bucket, queue: Queue[Any]):
        await queue.push("before")
        bucket.faulty.next("write", Fault.REPLY_LOST)
        bucket.faulty.next("write", Fault.ERROR, error="stopped")
        with pytest.raises(BucketqError) as caught:
            await bucket.run(queue.push("mine"))
        assert caught.value.outcome == "unknown"
        assert [job.payload for job in await queue.jobs()] == ["before", "mine"]


class TestAnErrorThatNobodyExpects:
    """As a bug in somebody's own Store would be."""

    @pytest.fixture
    async def dead(self, bucket: Bucket, queue: Queue[Any]) -> Queue[Any]:
        await queue.push_many([1, 2])
        (claim,) = await queue.claim()
        await claim.complete()
        bucket.faulty.crash()
        return queue

    async def test_every_call_fails_and_none_hangs(self, bucket: Bucket, client: Client, dead: Queue[Any]):
        for call in (lambda: dead.push("x"), lambda: dead.claim(wait=5), dead.stats, client.upkeep):
            with pytest.raises(Exception, match="dead"):
                await bucket.run(call())

    async def test_closing_ends(self, bucket: Bucket, client: Client, dead: Queue[Any]):
        with pytest.raises(Exception, match="dead"):
            await dead.push("x")
        await bucket.run(client.close())


async def test_leases_that_are_over_do_not_keep_a_stopped_store_busy(bucket: Bucket, queue: Queue[Any], clock: Clock):
    await queue.push("work")
    await queue.claim(lease=10)
    bucket.faulty.next("any", Fault.ERROR, error="stopped", times=10**6)
    await clock.advance(11)
    before = sum(bucket.faulty.calls.values())
    await clock.advance(10)
    assert sum(bucket.faulty.calls.values()) - before < 60
