"""How long what has ended stays, and what happens to it while its ending is on the way to the archive."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bucketq import Client, JobNotFound, Queue
from bucketq.testing import Clock, Fault
from tests.commit.support import Bucket


async def buried(queue: Queue[Any], payload: object = "work") -> str:
    job = await queue.push(payload)
    (claim,) = await queue.claim()
    await claim.fail("no luck", dead=True)
    return job.id


class TestADeadJobWhoseEndingIsNotArchivedYet:
    async def test_a_retry_waits_for_that_and_works(self, bucket: Bucket, queue: Queue[Any]):
        id_ = await buried(queue)
        held = bucket.hold("create", key="archive/*")
        retrying = asyncio.create_task(queue.retry(id_))
        await held.arrived()
        await bucket.clock.advance(5)
        assert not retrying.done()
        assert (await queue.get(id_)).status == "dead"
        held.release()
        job = await bucket.run(retrying)
        assert (job.id, job.status, job.attempt) == (id_, "ready", 0)
        assert [record.status for record in await bucket.records()] == ["dead"]

    async def test_a_purge_waits_for_that_and_works(self, bucket: Bucket, queue: Queue[Any]):
        for number in range(3):
            await buried(queue, number)
        assert await bucket.run(queue.purge(status="dead")) == 3
        assert await queue.jobs() == []
        assert len(await bucket.records()) == 3

    async def test_two_endings_are_two_records(self, bucket: Bucket, client: Client, queue: Queue[Any]):
        id_ = await buried(queue)
        await bucket.run(queue.retry(id_))
        (claim,) = await queue.claim()
        await claim.complete()
        await bucket.run(client.upkeep())
        records = [(record.id, record.ending, record.status, len(record.attempts)) for record in await bucket.records()]
        assert records == [(id_, 1, "dead", 1), (id_, 2, "done", 2)]

    async def test_a_retry_is_told_when_the_archive_fails(self, bucket: Bucket, queue: Queue[Any]):
        id_ = await buried(queue)
        bucket.faulty.next("create", Fault.ERROR, key="archive/*", error="disk_full")
        with pytest.raises(Exception, match="disk full"):
            await bucket.run(queue.retry(id_))
        assert (await bucket.run(queue.retry(id_))).status == "ready"

    async def test_two_clients_may_retry_at_once(self, bucket: Bucket, queue: Queue[Any]):
        id_ = await buried(queue)
        other = (await bucket.other()).queue("q")
        jobs = await asyncio.gather(bucket.run(queue.retry(id_)), bucket.run(other.retry(id_)))
        assert [job.status for job in jobs] == ["ready", "ready"]
        assert len(await bucket.records()) == 1
        await bucket.state()

    async def test_it_can_be_cancelled_by_nobody(self, bucket: Bucket, queue: Queue[Any]):
        id_ = await buried(queue)
        assert (await queue.cancel(id_)).status == "dead"


class TestHowLongItStays:
    async def gone(self, queue: Queue[Any], id_: str) -> bool:
        try:
            await queue.get(id_)
        except JobNotFound:
            return True
        return False

    async def test_a_result_for_its_ttl(self, queue: Queue[Any], clock: Clock):
        job = await queue.push("work")
        (claim,) = await queue.claim()
        await claim.complete({"answer": 42})
        await clock.advance(3_590)
        assert (await queue.get(job.id)).result == {"answer": 42}
        await clock.advance(20)
        assert await self.gone(queue, job.id)

    async def test_a_result_for_the_queues_own_ttl(self, queue: Queue[Any], clock: Clock):
        await queue.configure(result_ttl=120)
        job = await queue.push("work")
        (claim,) = await queue.claim()
        await claim.complete("short")
        await clock.advance(119)
        assert (await queue.get(job.id)).result == "short"
        await clock.advance(2)
        assert await self.gone(queue, job.id)

    async def test_nothing_without_a_result_once_it_is_archived(
        self, bucket: Bucket, client: Client, queue: Queue[Any]
    ):
        job = await queue.push("work")
        (claim,) = await queue.claim()
        await claim.complete()
        assert (await queue.get(job.id)).status == "done"
        await bucket.run(client.upkeep())
        assert await self.gone(queue, job.id)

    async def test_anything_for_as_long_as_finished_jobs_are_kept(
        self, bucket: Bucket, queue: Queue[Any], clock: Clock
    ):
        await queue.configure(keep_finished=600)
        done, cancelled, expired = await queue.push("a"), await queue.push("b"), await queue.push("c", ttl=5)
        (claim,) = await queue.claim()
        await claim.complete()
        await queue.cancel(cancelled.id)
        await clock.advance(590)
        found = {job.id: job.status for job in await queue.jobs()}
        assert found == {done.id: "done", cancelled.id: "cancelled", expired.id: "expired"}
        await clock.advance(20)
        assert await queue.jobs() == []
        assert len(await bucket.records()) == 3

    async def test_the_dead_for_their_retention(self, queue: Queue[Any], clock: Clock):
        await queue.configure(retention=86_400)
        id_ = await buried(queue)
        await clock.advance(86_390)
        assert (await queue.get(id_)).status == "dead"
        await clock.advance(20)
        assert await self.gone(queue, id_)

    async def test_the_dead_for_ever_without_one(self, queue: Queue[Any], clock: Clock):
        await queue.configure(retention=None)
        id_ = await buried(queue)
        await clock.advance(3_650 * 86_400)
        assert (await queue.get(id_)).status == "dead"

    async def test_a_dedup_key_longer_than_its_job(self, bucket: Bucket, client: Client, queue: Queue[Any]):
        job = await queue.push("work", dedup="d")
        (claim,) = await queue.claim()
        await claim.complete()
        await bucket.run(client.upkeep())
        again = await (await bucket.other()).queue("q").push("work", dedup="d")
        assert (again.id, again.duplicate, again.status) == (job.id, True, "done")

    async def test_the_counts_of_what_has_left(self, bucket: Bucket, client: Client, queue: Queue[Any]):
        for _ in range(3):
            await queue.push("work")
            (claim,) = await queue.claim()
            await claim.complete()
            await bucket.run(client.upkeep())
        other = await bucket.other()
        assert (await other.queue("q").stats()).done == 3
