"""What is being written is visible to nobody, and what is stored is visible to everybody."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bucketq import Client, JobNotFound, LeaseLost, Queue, StoreError
from bucketq.testing import Clock, Fault
from tests.commit.support import Bucket, started


class TestTheBatchInFlight:
    async def test_a_read_waits_until_it_has_landed(self, bucket: Bucket, queue: Queue[Any], clock: Clock):
        held = bucket.hold("write")
        pushing = asyncio.create_task(queue.push("new"))
        await held.arrived()
        reads = started(queue.stats(), queue.jobs(), queue.claim())
        await clock.advance(30)
        assert not any(read.done() for read in reads)
        held.release()
        await asyncio.wait([pushing, *reads])
        assert reads[0].result().ready == 1
        assert [job.id for job in reads[1].result()] == [pushing.result().id]
        assert [claim.job.id for claim in reads[2].result()] == [pushing.result().id]

    async def test_a_write_that_fails_was_never_seen(self, bucket: Bucket, client: Client, queue: Queue[Any]):
        there = await queue.push("there")
        held = bucket.hold("write")
        bucket.faulty.next("write", Fault.ERROR)
        pushing = asyncio.create_task(queue.push("new"))
        await held.arrived()
        tag, _, number = there.id.rpartition("-")
        id_ = f"{tag}-{int(number) + 1}"
        reads = started(queue.stats(), queue.jobs(), queue.get(id_))
        await bucket.clock.settle()
        held.release()
        await asyncio.wait([pushing, *reads])
        assert isinstance(pushing.exception(), StoreError)
        assert reads[0].result().ready == 1
        assert [job.payload for job in reads[1].result()] == ["there"]
        assert isinstance(reads[2].exception(), JobNotFound)
        await bucket.run(client.upkeep())
        assert [job.payload for job in await queue.jobs()] == ["there"]

    async def test_a_read_decided_behind_a_change_is_answered_with_it(
        self, bucket: Bucket, queue: Queue[Any], clock: Clock
    ):
        held = bucket.hold("write")
        pushing = asyncio.create_task(queue.push("new"))
        counting = asyncio.create_task(queue.stats())
        await held.arrived()
        await clock.settle()
        assert not counting.done()
        held.release()
        await asyncio.wait([pushing, counting])
        assert counting.result().ready == 1
        assert bucket.writes == 1

    async def test_a_read_decided_behind_a_change_that_fails_does_not_show_it(self, bucket: Bucket, queue: Queue[Any]):
        bucket.faulty.next("write", Fault.ERROR)
        pushing = asyncio.create_task(queue.push("new"))
        counting = asyncio.create_task(queue.stats())
        await asyncio.wait([pushing, counting])
        assert isinstance(pushing.exception(), StoreError)
        assert counting.result().ready == 0

    async def test_a_claim_of_a_push_in_the_same_batch_is_answered_with_it(self, bucket: Bucket, queue: Queue[Any]):
        held = bucket.hold("write")
        pushing = asyncio.create_task(queue.push("new"))
        claiming = asyncio.create_task(queue.claim())
        await held.arrived()
        await bucket.clock.settle()
        assert not claiming.done()
        held.release()
        assert [claim.job.id for claim in await claiming] == [(await pushing).id]
        assert bucket.writes == 1

    async def test_an_error_decided_behind_a_change_is_told_with_it(self, bucket: Bucket, queue: Queue[Any]):
        job = await queue.push("work")
        (claim,) = await queue.claim()
        held = bucket.hold("write")
        cancelling = asyncio.create_task(queue.cancel(job.id))
        completing = asyncio.create_task(claim.complete())
        await held.arrived()
        await bucket.clock.settle()
        assert not completing.done()
        held.release()
        await asyncio.wait([cancelling, completing])
        assert isinstance(completing.exception(), LeaseLost)


class TestAnAnswerThatChangesNothing:
    """It is given on what is stored: the read is sent after the call arrived."""

    @pytest.mark.parametrize("ask", ["claim", "get", "stats", "jobs"])
    async def test_it_sees_what_another_client_has_just_committed(self, bucket: Bucket, queue: Queue[Any], ask: str):
        await queue.push("warm")
        other = (await bucket.other()).queue("q")
        await other.purge()
        job = await other.push("theirs")
        match ask:
            case "claim":
                assert [claim.job.id for claim in await queue.claim()] == [job.id]
            case "get":
                assert (await queue.get(job.id)).payload == "theirs"
            case "stats":
                assert (await queue.stats()).ready == 1
            case "jobs":
                assert (await queue.jobs())[-1].id == job.id

    async def test_no_final_error_is_given_on_what_is_no_longer_true(self, bucket: Bucket, queue: Queue[Any]):
        await queue.configure(max_waiting=1)
        job = await queue.push("work")
        other = (await bucket.other()).queue("q")
        await other.cancel(job.id)
        assert (await queue.push("there is room again")).status == "ready"

    async def test_one_read_serves_the_whole_batch(self, bucket: Bucket, queue: Queue[Any]):
        await queue.push("there")
        before = bucket.reads
        await asyncio.gather(*(queue.stats() for _ in range(50)), *(queue.claim(key="none") for _ in range(50)))
        assert bucket.reads - before == 1

    async def test_one_read_is_enough_even_if_others_never_stop_committing(self, bucket: Bucket, queue: Queue[Any]):
        await queue.push("there")
        other = (await bucket.other()).queue("q")
        before = bucket.reads
        asking = asyncio.create_task(queue.stats())
        for number in range(10):
            held = bucket.hold("get")
            await asyncio.wait([asking, asyncio.ensure_future(held.arrived())], return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                break
            await other.push(number)
            held.release()
        assert asking.result().ready >= 2
        assert bucket.reads - before == 1


class TestTwoFirstWriters:
    @pytest.mark.parametrize("late", [0, 1])
    async def test_both_jobs_are_stored_under_one_tag(self, any_bucket: Bucket, late: int):
        clients = [await any_bucket.connect(), await any_bucket.connect()]
        holds = [any_bucket.hold("create"), any_bucket.hold("create")]
        pushing = [
            asyncio.create_task(client.queue("q").push(name)) for client, name in zip(clients, "ab", strict=True)
        ]
        for held in holds:
            await held.arrived()
        holds[1 - late].release()
        await pushing[1 - late]
        holds[late].release()
        jobs = [await each for each in pushing]
        assert len({job.id for job in jobs}) == 2
        assert len({job.id.partition("-")[0] for job in jobs}) == 1
        for client in clients:
            assert sorted(job.payload for job in await client.queue("q").jobs()) == ["a", "b"]
        assert (await any_bucket.state()).seq == 2

    async def test_a_claim_of_the_first_who_loses_finds_the_others_job(self, bucket: Bucket):
        one, two = await bucket.connect(), await bucket.connect()
        held = bucket.hold("create")
        pausing = asyncio.create_task(one.queue("q").configure(lease=5))
        claiming = asyncio.create_task(one.queue("q").claim())
        await held.arrived()
        job = await two.queue("q").push("theirs")
        held.release()
        await pausing
        (claim,) = await claiming
        assert (claim.job.id, claim.lease) == (job.id, 5)
