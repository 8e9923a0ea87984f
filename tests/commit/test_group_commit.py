"""Commands gather while one write is in flight, and share the next."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bucketq import Client, JobNotFound, LeaseLost, Queue, QueueFull, SettingInvalid
from bucketq.testing import Clock
from tests.commit.support import Bucket


class TestCosts:
    async def test_a_lone_push_is_one_write_and_no_read(self, bucket: Bucket, queue: Queue[Any]):
        await queue.push("first")
        before = sum(bucket.faulty.calls.values())
        await queue.push("second")
        assert sum(bucket.faulty.calls.values()) - before == 1
        assert bucket.writes == 2

    async def test_an_empty_claim_is_one_read_and_no_write(self, bucket: Bucket, queue: Queue[Any]):
        await queue.push("first")
        await queue.claim()
        writes, reads = bucket.writes, bucket.reads
        assert await queue.claim() == []
        assert (bucket.writes - writes, bucket.reads - reads) == (0, 1)

    async def test_reads_write_nothing(self, bucket: Bucket, client: Client, queue: Queue[Any]):
        job = await queue.push("first")
        await asyncio.gather(queue.stats(), queue.jobs(), queue.get(job.id), queue.settings(), client.queues())
        assert bucket.writes == 1

    async def test_who_waits_costs_nothing_while_nothing_happens(self, bucket: Bucket, queue: Queue[Any], clock: Clock):
        await queue.push("first", delay=4_000)
        waiting = [asyncio.create_task(queue.claim(wait=3_600)) for _ in range(5)]
        await clock.advance(1)
        before = sum(bucket.faulty.calls.values())
        await clock.advance(3_000)
        assert sum(bucket.faulty.calls.values()) == before
        assert not any(each.done() for each in waiting)
        await clock.advance(600)
        assert [each.result() for each in waiting] == [[]] * 5

    async def test_an_idle_client_costs_nothing(self, bucket: Bucket, queue: Queue[Any], clock: Clock):
        await queue.push("first")
        before = sum(bucket.faulty.calls.values())
        await clock.advance(86_400)
        assert sum(bucket.faulty.calls.values()) == before


class TestSharing:
    @pytest.mark.parametrize("count", [2, 100])
    async def test_all_that_came_while_a_write_was_under_way_share_the_next(
        self, bucket: Bucket, queue: Queue[Any], count: int
    ):
        held = bucket.hold("write")
        first = asyncio.create_task(queue.push("first"))
        await held.arrived()
        others = [asyncio.create_task(queue.push(n)) for n in range(count)]
        await bucket.clock.settle()
        assert bucket.writes == 1
        held.release()
        await asyncio.wait([first, *others])
        assert bucket.writes == 2
        assert [job.payload for job in await queue.jobs(limit=200)] == ["first", *range(count)]

    async def test_callers_that_go_on_at_once_stay_together(self, bucket: Bucket, queue: Queue[Any]):
        """They get to run before the next write goes; else they would split into two cohorts."""

        async def caller() -> None:
            for n in range(10):
                await queue.push(n)

        await asyncio.gather(*(caller() for _ in range(20)))
        assert bucket.writes == 10

    async def test_workers_stay_together(self, bucket: Bucket, queue: Queue[Any]):
        await queue.push_many(range(50))

        async def worker() -> None:
            while claims := await queue.claim():
                await claims[0].complete()

        await asyncio.gather(*(worker() for _ in range(10)))
        assert bucket.writes == 1 + 10
        assert (await queue.stats()).done == 50

    async def test_a_batch_is_bounded_by_count(self, bucket: Bucket):
        queue = (await bucket.connect(batch_count_max=10)).queue("q")
        jobs = await asyncio.gather(*(queue.push(n) for n in range(35)))
        assert bucket.writes == 4
        assert [job.payload for job in await queue.jobs()] == [job.payload for job in jobs] == list(range(35))

    async def test_a_batch_is_bounded_by_bytes(self, bucket: Bucket):
        queue = (await bucket.connect(batch_bytes_max=1_000)).queue("q")
        await asyncio.gather(*(queue.push("x" * 398) for _ in range(6)))
        assert bucket.writes == 3
        await queue.push("x" * 5_000)  # one that is larger goes alone
        assert bucket.writes == 4

    async def test_an_interval_spaces_the_writes_out(self, bucket: Bucket, clock: Clock):
        queue = (await bucket.connect(commit_interval=2)).queue("q")
        await queue.push("first")
        pushing = [asyncio.create_task(queue.push("second"))]
        await clock.advance(1)
        pushing.append(asyncio.create_task(queue.push("third")))
        await clock.advance(0.9)
        assert bucket.writes == 1
        await clock.advance(0.1)
        assert all(each.done() for each in pushing)
        assert bucket.writes == 2
        await clock.advance(10)
        await queue.push("after a rest it is written at once")
        assert bucket.writes == 3


class TestOneBadCommandFailsAlone:
    async def test_its_neighbours_commit(self, bucket: Bucket, client: Client, queue: Queue[Any]):
        await queue.configure(max_waiting=3)
        await queue.push_many([1, 2])
        one, two = await queue.claim(2)
        await queue.cancel(one.job.id)
        writes = bucket.writes
        answers: list[Any] = await asyncio.gather(
            one.complete(),
            two.complete(),
            one.heartbeat(),
            queue.push("new"),
            queue.push_many(["too", "many", "of", "them"]),
            queue.get("no-such"),
            queue.retry(two.job.id),
            queue.claim(group="nobody"),
            one.release(),
            one.fail("too late"),
            queue.complete_many([one, two]),
            return_exceptions=True,
        )
        kinds = [type(answer) if isinstance(answer, Exception) else None for answer in answers]
        lost, missing = LeaseLost, JobNotFound
        assert kinds == [lost, None, lost, None, QueueFull, missing, missing, SettingInvalid, lost, lost, None]
        assert [type(each) for each in answers[-1]] == [lost, lost]
        assert bucket.writes - writes == 1
        assert [job.payload for job in await queue.jobs(status="ready")] == ["new"]
        await bucket.state()
