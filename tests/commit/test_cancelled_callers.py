"""A caller that is cancelled leaves nothing behind: what it would have been given, somebody else gets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bucketq import Client, Queue, StoreError
from bucketq.testing import Clock, Fault
from tests.commit.support import Bucket


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


class TestAClaim:
    async def test_that_was_pending_never_claims(self, bucket: Bucket, queue: Queue[Any]):
        await queue.push("work")
        held = bucket.hold("write")
        pushing = asyncio.create_task(queue.push("more"))
        await held.arrived()
        claiming = asyncio.create_task(queue.claim(2))
        await bucket.clock.settle()
        await cancelled(claiming)
        held.release()
        await pushing
        assert (await queue.stats()).ready == 2
        assert [job.token for job in await queue.jobs()] == [0, 0]

    @pytest.mark.parametrize("wait", [0, 60])
    async def test_that_was_being_written_is_given_back(
        self, bucket: Bucket, queue: Queue[Any], clock: Clock, wait: float
    ):
        await queue.configure(max_attempts=1)
        await queue.push_many([1, 2])
        held = bucket.hold("write")
        claiming = asyncio.create_task(queue.claim(2, wait=wait))
        await held.arrived()
        await cancelled(claiming)
        held.release()
        await clock.settle()
        claims = await queue.claim(2)
        assert [(claim.payload, claim.token, claim.job.attempt) for claim in claims] == [(1, 2, 1), (2, 2, 1)]
        assert await queue.complete_many(claims) == [None, None]

    async def test_that_was_served_while_it_waited_is_given_to_the_next_who_waits(
        self, bucket: Bucket, queue: Queue[Any], clock: Clock
    ):
        first = asyncio.create_task(queue.claim(wait=60))
        await clock.settle()
        second = asyncio.create_task(queue.claim(wait=60))
        await clock.settle()
        held = bucket.hold("write")
        pushing = asyncio.create_task(queue.push("work"))
        await held.arrived()
        await cancelled(first)
        held.release()
        await pushing
        (claim,) = await bucket.run(second)
        assert (claim.payload, claim.job.attempt) == ("work", 1)

    async def test_that_waited_is_forgotten(self, bucket: Bucket, queue: Queue[Any], clock: Clock):
        waiting = asyncio.create_task(queue.claim(wait=60))
        await clock.settle()
        await cancelled(waiting)
        writes = bucket.writes
        job = await queue.push("work")
        assert bucket.writes - writes == 1
        assert ((await queue.get(job.id)).status, (await queue.get(job.id)).token) == ("ready", 0)
        await clock.advance(120)
        assert clock.pending.timers == 0

    @pytest.mark.parametrize("wait", [0, 60])
    async def test_at_the_moment_of_its_answer_is_given_back(self, queue: Queue[Any], clock: Clock, wait: float):
        """Two tasks of a group share a batch: the first to hear fails, and the other is cancelled before it has run."""
        await queue.push("work")
        claiming: list[asyncio.Task[Any]] = []

        async def fail() -> None:
            await queue.push("more")
            claiming[0].cancel()

        failing = asyncio.create_task(fail())
        claiming.append(asyncio.create_task(queue.claim(wait=wait)))
        await asyncio.wait([failing, *claiming])
        assert claiming[0].cancelled()
        await clock.settle()
        assert (await queue.stats()).ready == 2

    async def test_whose_write_failed_gives_nothing_back(
        self, bucket: Bucket, client: Client, queue: Queue[Any], clock: Clock
    ):
        """It was given nothing: the same job, under the same token, may be another's by now."""
        await queue.push("work")
        claiming: list[asyncio.Task[Any]] = []

        async def fail() -> None:
            try:
                await client.queue("p").push("more")
            finally:
                claiming[0].cancel()

        bucket.faulty.next("write", Fault.ERROR)
        failing = asyncio.create_task(fail())
        claiming += [asyncio.create_task(queue.claim(worker=name)) for name in ("gone", "lucky")]
        await asyncio.wait([failing, *claiming])
        assert isinstance(failing.exception(), StoreError)
        assert claiming[0].cancelled()
        (claim,) = claiming[1].result()
        await clock.settle()
        assert (await queue.get(claim.job.id)).worker == "lucky"
        await claim.complete()

    async def test_that_completes_by_itself_may_be_lost_but_not_doubled(
        self, bucket: Bucket, client: Client, queue: Queue[Any]
    ):
        await queue.push("work")
        held = bucket.hold("write")
        claiming = asyncio.create_task(queue.claim(auto_complete=True))
        await held.arrived()
        await cancelled(claiming)
        held.release()
        assert await queue.claim() == []
        await bucket.run(client.upkeep())
        assert [record.status for record in await bucket.records()] == ["done"]


class TestOthers:
    async def test_a_push_that_was_pending_stores_nothing(self, bucket: Bucket, queue: Queue[Any]):
        held = bucket.hold("write")
        first = asyncio.create_task(queue.push("first"))
        await held.arrived()
        second = asyncio.create_task(queue.push("second"))
        await bucket.clock.settle()
        await cancelled(second)
        held.release()
        await first
        assert [job.payload for job in await queue.jobs()] == ["first"]
        assert bucket.writes == 1

    async def test_a_push_that_was_being_written_may_land(self, bucket: Bucket, client: Client, queue: Queue[Any]):
        held = bucket.hold("write")
        pushing = asyncio.create_task(queue.push("work"))
        neighbour = asyncio.create_task(queue.stats())
        await held.arrived()
        await cancelled(pushing)
        held.release()
        assert (await neighbour).ready == 1
        await bucket.run(client.close())
        assert bucket.clock.pending.timers == 0
        assert (await bucket.state()).next_n == 2

    async def test_a_completion_that_was_being_written_counts_once(
        self, bucket: Bucket, client: Client, queue: Queue[Any]
    ):
        await queue.push("work")
        (claim,) = await queue.claim()
        held = bucket.hold("write")
        completing = asyncio.create_task(claim.complete())
        await held.arrived()
        await cancelled(completing)
        held.release()
        await bucket.run(client.upkeep())
        assert [record.status for record in await bucket.records()] == ["done"]

    async def test_all_of_a_batch_may_go(self, bucket: Bucket, queue: Queue[Any]):
        held = bucket.hold("write")
        calls = [asyncio.create_task(queue.push(n)) for n in range(5)]
        await held.arrived()
        for call in calls:
            await cancelled(call)
        held.release()
        assert (await queue.stats()).ready == 5
