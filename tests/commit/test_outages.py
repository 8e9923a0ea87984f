"""The store fails for a while: callers wait if it is short, and are told what is known if it is not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bucketq import Client, Conflict, OutcomeUnknown, Queue, StoreError
from bucketq.store.base import Version
from bucketq.testing import Clock, Fault, FaultyStore, MemoryStore
from tests.commit.deeds import DEEDS
from tests.commit.support import Bucket


def outage(faulty: FaultyStore) -> None:
    """From now on, until it is healed, no request arrives."""
    faulty.next("any", Fault.UNAVAILABLE, times=10**9)


class RefusingStore(MemoryStore):
    """Takes no write, and says that the condition did not hold."""

    async def create(self, key: str, data: bytes) -> Version:
        raise Conflict(f"{key}: no")


class TestShorterThanThePatience:
    @pytest.mark.parametrize("kind", DEEDS)
    async def test_callers_wait_and_succeed(self, bucket: Bucket, client: Client, kind: str):
        deed = DEEDS[kind](client, bucket)
        await deed.prepare()
        outage(bucket.faulty)
        acting = asyncio.create_task(deed.act())
        await bucket.clock.advance(20)
        assert not acting.done()
        bucket.faulty.heal()
        await deed.check(await bucket.run(acting))
        await bucket.state()

    async def test_reads_wait_too(self, bucket: Bucket, queue: Queue[Any], clock: Clock):
        job = await queue.push("there")
        outage(bucket.faulty)
        asking = asyncio.create_task(queue.get(job.id))
        claiming = asyncio.create_task(queue.claim(key="nobody"))
        await clock.advance(50)
        bucket.faulty.heal()
        assert (await bucket.run(asking)).payload == "there"
        assert await claiming == []

    async def test_a_burst_of_failures_on_the_way_to_know_is_no_obstacle(self, bucket: Bucket, queue: Queue[Any]):
        bucket.faulty.next("write", Fault.REPLY_LOST)
        bucket.faulty.next("get", Fault.UNAVAILABLE, times=8)
        job = await bucket.run(queue.push("once"))
        assert [found.id for found in await bucket.run(queue.jobs())] == [job.id]

    @pytest.mark.parametrize("seen", [True, False])
    async def test_when_it_is_over_nobody_is_held_up_by_how_long_it_was(
        self, bucket: Bucket, queue: Queue[Any], clock: Clock, seen: bool
    ):
        """A write that took so long is no measure of how long others need; heartbeats wait behind it."""
        others = [(await bucket.other()).queue("q") for _ in range(3)]
        outage(bucket.faulty)
        pushing = asyncio.create_task(queue.push("first"))
        await clock.advance(50)
        for other in others if seen else []:
            await bucket.run(other.push("theirs"))
        bucket.faulty.heal()
        await bucket.run(pushing)
        for _ in range(5):
            began_us = clock.mono_us()
            await bucket.run(queue.push("next"))
            assert clock.mono_us() - began_us < 5_000_000

    async def test_opening_waits(self, bucket: Bucket, queue: Queue[Any]):
        await queue.push("there")
        bucket.faulty.next("get", Fault.UNAVAILABLE, times=5)
        client = await bucket.run(bucket.connect())
        assert (await client.queue("q").stats()).ready == 1


class TestLongerThanThePatience:
    @pytest.mark.parametrize("kind", DEEDS)
    @pytest.mark.parametrize("landed", [True, False])
    async def test_a_write_is_of_unknown_outcome_and_never_doubled(self, bucket: Bucket, kind: str, landed: bool):
        deed = DEEDS[kind](await bucket.connect(conflict_timeout=5), bucket)
        await deed.prepare()
        if landed:
            bucket.faulty.next("write", Fault.REPLY_LOST)
        outage(bucket.faulty)
        with pytest.raises(OutcomeUnknown) as caught:
            await bucket.run(deed.act())
        assert caught.value.cause is not None
        bucket.faulty.heal()
        assert await deed.was_done() is landed
        await bucket.run(deed.client.queue("after").push("goes on"))
        assert await deed.was_done() is landed
        await bucket.state()

    async def test_a_read_is_a_store_error(self, bucket: Bucket):
        queue = (await bucket.connect(conflict_timeout=5)).queue("q")
        job = await queue.push("there")
        outage(bucket.faulty)
        with pytest.raises(StoreError) as caught:
            await bucket.run(queue.get(job.id))
        assert caught.value.cause is not None
        bucket.faulty.heal()
        assert (await bucket.run(queue.get(job.id))).payload == "there"

    async def test_a_push_by_dedup_key_may_be_asked_again(self, bucket: Bucket):
        queue = (await bucket.connect(conflict_timeout=5)).queue("q")
        await queue.push("before")
        bucket.faulty.next("write", Fault.REPLY_LOST)
        outage(bucket.faulty)
        with pytest.raises(OutcomeUnknown):
            await bucket.run(queue.push("once", dedup="d"))
        bucket.faulty.heal()
        assert (await bucket.run(queue.push("once", dedup="d"))).duplicate
        assert [job.payload for job in await bucket.run(queue.jobs())] == ["before", "once"]

    async def test_a_store_that_goes_on_refusing_is_a_conflict_in_the_end(self, bucket: Bucket):
        """A conflict is believed only once something was read that explains it."""
        client = await bucket.connect(RefusingStore(bucket.clock), conflict_timeout=2)
        pushing = asyncio.create_task(client.queue("q").push("first"))
        await bucket.clock.advance(1.5)
        assert not pushing.done()
        await bucket.clock.advance(5)
        with pytest.raises(Conflict):
            pushing.result()

    async def test_opening_fails_with_what_the_store_said(self, bucket: Bucket):
        outage(bucket.faulty)
        with pytest.raises(StoreError) as caught:
            await bucket.run(bucket.connect(conflict_timeout=5))
        assert isinstance(caught.value.cause, TimeoutError)

    async def test_a_waiting_claim_sees_what_others_pushed_meanwhile(self, bucket: Bucket, clock: Clock):
        queue = (await bucket.connect(conflict_timeout=5)).queue("q")
        other = await bucket.other()
        waiting = asyncio.create_task(queue.claim(wait=300))
        await clock.settle()
        outage(bucket.faulty)
        await other.queue("q").push("for you")
        await clock.advance(20)
        bucket.faulty.heal()
        await clock.advance(10)
        assert [claim.payload for claim in waiting.result()] == ["for you"]

    async def test_of_two_who_wait_one_is_told_and_the_other_gets_the_job(self, bucket: Bucket, clock: Clock):
        queue = (await bucket.connect()).queue("q")
        await queue.push("later", delay=10)
        waiting = [asyncio.create_task(queue.claim(wait=300)) for _ in range(2)]
        await clock.advance(9)
        bucket.faulty.next("write", Fault.ERROR)
        await clock.advance(10)
        assert isinstance(waiting[0].exception(), StoreError)
        assert [claim.payload for claim in waiting[1].result()] == ["later"]
