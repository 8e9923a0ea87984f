"""Closing drains: every caller gets an answer, and nothing goes on afterwards."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bucketq import BucketqError, Client, Queue
from bucketq.testing import Clock, Fault
from tests.commit.support import Bucket, started


async def test_calls_in_flight_and_pending_get_their_answers(bucket: Bucket, client: Client, queue: Queue[Any]):
    held = bucket.hold("write")
    first = asyncio.create_task(queue.push("first"))
    await held.arrived()
    others = started(queue.push("second"), queue.stats(), queue.claim(2))
    await bucket.clock.settle()
    closing = asyncio.create_task(client.close())
    await bucket.clock.settle()
    assert not closing.done()
    held.release()
    await closing
    assert first.done()
    assert [others[0].result().payload, others[1].result().ready, len(others[2].result())] == ["second", 2, 2]


async def test_claims_that_wait_get_none(bucket: Bucket, client: Client, queue: Queue[Any], clock: Clock):
    waiting = [asyncio.create_task(queue.claim(wait=60)) for _ in range(3)]
    await clock.settle()
    await client.close()
    assert [each.result() for each in waiting] == [[], [], []]


async def test_a_claim_that_would_begin_to_wait_gets_none(
    bucket: Bucket, client: Client, queue: Queue[Any], clock: Clock
):
    held = bucket.hold("get")
    waiting = asyncio.create_task(queue.claim(wait=60))
    await held.arrived()
    closing = asyncio.create_task(client.close())
    await clock.settle()
    held.release()
    await closing
    assert waiting.result() == []


async def test_a_retry_that_waits_for_the_archive_gets_its_answer(bucket: Bucket, client: Client, queue: Queue[Any]):
    """Nothing has ended here, so that closing has no reason of its own to seal."""
    job = await queue.push("work")
    other = await bucket.other()
    (claim,) = await other.queue("q").claim()
    await claim.fail("no luck", dead=True)
    held = bucket.hold("get")
    retrying = asyncio.create_task(queue.retry(job.id))
    await held.arrived()
    closing = asyncio.create_task(client.close())
    await bucket.clock.settle()
    held.release()
    await bucket.run(closing)
    await bucket.clock.settle()
    assert retrying.done()
    assert retrying.result().status == "ready"


async def test_a_claim_that_was_cancelled_is_given_back_before_the_end(
    bucket: Bucket, client: Client, queue: Queue[Any]
):
    await queue.push("work")
    held = bucket.hold("write")
    claiming = asyncio.create_task(queue.claim())
    await held.arrived()
    claiming.cancel()
    closing = asyncio.create_task(client.close())
    await bucket.clock.settle()
    held.release()
    await closing
    other = await bucket.other()
    assert (await other.queue("q").stats()).ready == 1


async def test_a_long_purge_is_finished(bucket: Bucket, client: Client, queue: Queue[Any]):
    await queue.push_many(range(1_500))
    held = bucket.hold("write")
    purging = asyncio.create_task(queue.purge())
    await held.arrived()
    closing = asyncio.create_task(client.close())
    await bucket.clock.settle()
    held.release()
    await bucket.run(closing)
    assert purging.result() == 1_500


async def test_what_ends_at_the_last_moment_is_archived_too(bucket: Bucket, client: Client, queue: Queue[Any]):
    await queue.push("work")
    (claim,) = await queue.claim()
    held = bucket.hold("write")
    completing = asyncio.create_task(claim.complete())
    await held.arrived()
    closing = asyncio.create_task(client.close())
    await bucket.clock.settle()
    held.release()
    await bucket.run(closing)
    assert completing.exception() is None
    assert [record.id for record in await bucket.records()] == [claim.job.id]


async def test_callers_are_told_when_the_store_fails_just_then(bucket: Bucket, client: Client, queue: Queue[Any]):
    await queue.push("first")
    held = bucket.hold("write")
    bucket.faulty.next("any", Fault.ERROR, error="disk_full", times=10**6)
    calls = [asyncio.create_task(queue.push("second"))]
    await held.arrived()
    calls.append(asyncio.create_task(queue.push("third")))
    await bucket.clock.settle()
    closing = asyncio.create_task(client.close())
    await bucket.clock.settle()
    held.release()
    await bucket.run(closing)
    assert [type(each.exception()).__name__ for each in calls] == ["StoreError", "StoreError"]


@pytest.mark.parametrize("wait", [0, 10])
async def test_afterwards_every_call_is_refused(bucket: Bucket, client: Client, queue: Queue[Any], wait: float):
    await client.close()
    with pytest.raises(BucketqError, match="closed"):
        await queue.claim(wait=wait)
    await client.close()


class TestNothingGoesOn:
    async def finished(self, bucket: Bucket, client: Client) -> None:
        await bucket.run(client.close())
        assert bucket.clock.pending.timers == 0
        before = sum(bucket.faulty.calls.values())
        await bucket.clock.advance(3_600)
        assert sum(bucket.faulty.calls.values()) == before

    async def test_after_work(self, bucket: Bucket, client: Client, queue: Queue[Any]):
        await queue.push_many(range(3), delay=10)
        await queue.push("now", ttl=30)
        await queue.claim()
        await self.finished(bucket, client)

    async def test_after_claims_waited(self, bucket: Bucket, client: Client, queue: Queue[Any]):
        waiting = asyncio.create_task(queue.claim(wait=60))
        await bucket.clock.settle()
        await self.finished(bucket, client)
        assert waiting.result() == []

    async def test_after_the_archive_failed(self, bucket: Bucket, client: Client, queue: Queue[Any]):
        await queue.push("work")
        (claim,) = await queue.claim()
        await claim.complete()
        bucket.faulty.next("create", Fault.ERROR, key="archive/*", times=10**6)
        await self.finished(bucket, client)

    async def test_after_a_segment_of_others_was_seen(self, bucket: Bucket, client: Client, queue: Queue[Any]):
        await queue.push("work")
        elsewhere = Clock()
        other = await bucket.connect(clock=elsewhere)
        (claim,) = await other.queue("q").claim()
        await claim.complete()
        bucket.faulty.next("create", Fault.ERROR, key="archive/*", times=10**6)
        with pytest.raises(BucketqError):
            await elsewhere.run(other.upkeep())
        await queue.stats()
        assert bucket.clock.pending.timers > 0
        await self.finished(bucket, client)


async def test_an_interval_does_not_hold_it_up(bucket: Bucket, clock: Clock):
    client = await bucket.connect(commit_interval=600)
    queue = client.queue("q")
    await queue.push("first")
    second = asyncio.create_task(queue.push("second"))
    await clock.settle()
    started_us = clock.mono_us()
    await clock.run(client.close())
    assert second.done()
    assert clock.mono_us() == started_us
