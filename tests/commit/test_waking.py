"""Whatever makes a job claimable wakes a claim that waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bucketq import Claim, Client, PushTo, Queue
from bucketq.testing import Clock
from tests.commit.support import Bucket

Waiting = asyncio.Task[list[Claim[Any]]]
Event = Callable[[], Awaitable[object]]


class Case:
    """A queue in which nothing can be claimed, and what changes that."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self.client = client
        self.queue = client.queue("q")
        self.clock = clock

    async def push(self) -> Event:
        return lambda: self.queue.push("work")

    async def transact(self) -> Event:
        return lambda: self.client.transact([PushTo("q", "work")])

    async def release(self) -> Event:
        (claim,) = await self._claimed(1)
        return claim.release

    async def fail(self) -> Event:
        (claim,) = await self._claimed(1)
        return lambda: claim.fail("no luck", retry_in=0)

    async def resume(self) -> Event:
        await self.queue.push("work")
        await self.queue.pause()
        return self.queue.resume

    async def head_of_key_done(self) -> Event:
        await self.queue.configure(ordered=True)
        (claim,) = await self._claimed(1, 2, key="k")
        return claim.complete

    async def head_of_key_cancelled(self) -> Event:
        await self.queue.configure(ordered=True)
        head = await self.queue.push("later", key="k", delay=1_000)
        await self.queue.push("work", key="k")
        return lambda: self.queue.cancel(head.id)

    async def max_running_freed(self) -> Event:
        await self.queue.configure(max_running=1)
        (claim,) = await self._claimed(1, 2)
        return claim.complete

    async def max_running_raised(self) -> Event:
        await self.queue.configure(max_running=1)
        await self._claimed(1, 2)
        return lambda: self.queue.configure(max_running=2)

    async def key_limit_freed(self) -> Event:
        await self.queue.configure(max_running_per_key=1)
        (claim,) = await self._claimed(1, 2, key="k")
        return lambda: claim.fail("no luck", dead=True)

    async def rate_lifted(self) -> Event:
        await self.queue.configure(rate="1/h")
        await self._claimed(1, 2)
        return lambda: self.queue.configure(rate=None)

    async def _claimed(self, count: int, push: int = 1, **options: Any) -> list[Claim[Any]]:
        await self.queue.push_many(["work"] * push, **options)
        return await self.queue.claim(count, lease=1_000)


EVENTS = [
    "push",
    "transact",
    "release",
    "fail",
    "resume",
    "head_of_key_done",
    "head_of_key_cancelled",
    "max_running_freed",
    "max_running_raised",
    "key_limit_freed",
    "rate_lifted",
]


@asynccontextmanager
async def waiting_for(queue: Queue[Any], clock: Clock, wait: float = 10_000) -> AsyncIterator[Waiting]:
    waiting = asyncio.create_task(queue.claim(wait=wait))
    await clock.settle()
    assert not waiting.done()
    yield waiting
    waiting.cancel()


class TestAnEvent:
    @pytest.mark.parametrize("name", EVENTS)
    async def test_wakes_in_the_commit_that_carries_it(self, bucket: Bucket, client: Client, clock: Clock, name: str):
        event = await getattr(Case(client, clock), name)()
        async with waiting_for(client.queue("q"), clock) as waiting:
            writes = bucket.writes
            await event()
            await clock.settle()
            assert [claim.payload for claim in waiting.result()] == ["work"]
            assert bucket.writes - writes == 1

    @pytest.mark.parametrize("name", EVENTS)
    async def test_wakes_another_client(self, bucket: Bucket, client: Client, clock: Clock, name: str):
        event = await getattr(Case(await bucket.other(), clock), name)()
        async with waiting_for(client.queue("q"), clock) as waiting:
            await event()
            await clock.settle()
            assert [claim.payload for claim in waiting.result()] == ["work"]
        await bucket.state()

    async def test_wakes_as_many_as_there_are_jobs(
        self, bucket: Bucket, client: Client, queue: Queue[Any], clock: Clock
    ):
        waiting = [asyncio.create_task(queue.claim(wait=100, lease=1_000)) for _ in range(4)]
        await clock.settle()
        await queue.push_many([1, 2, 3])
        await clock.settle()
        assert [[claim.payload for claim in each.result()] for each in waiting[:3]] == [[1], [2], [3]]
        assert not waiting[3].done()
        assert bucket.writes == 1
        await clock.advance(100)
        assert waiting[3].result() == []

    async def test_wakes_those_only_whose_wish_it_grants(self, client: Client, clock: Clock):
        queue = client.queue("q")
        await client.queue("grouped").subscribe("g")
        wishes = [
            asyncio.create_task(call)
            for call in (
                queue.claim(wait=100, key="other"),
                client.claim(["p", "q"], wait=100),
                client.claim(["p"], wait=100),
                client.claim(None, wait=100),
                client.queue("grouped").claim(wait=100, group="g"),
            )
        ]
        await clock.settle()
        await queue.push("work", key="k")
        await clock.settle()
        assert sorted(at for at, wish in enumerate(wishes) if wish.done()) in ([1], [3])
        await client.queue("grouped").push("seen")
        await queue.push("any")
        await clock.settle()
        assert [wish.done() for wish in wishes] == [False, True, False, True, True]
        for wish in wishes:
            wish.cancel()


class TestTime:
    """In one client: with one write; between two: by the other's own timer."""

    @pytest.fixture(params=["one client", "two clients"])
    async def pair(
        self, request: pytest.FixtureRequest, bucket: Bucket, client: Client
    ) -> tuple[Queue[Any], Queue[Any]]:
        other = client if request.param == "one client" else await bucket.other()
        return client.queue("q"), other.queue("q")

    async def woken_at(self, bucket: Bucket, queue: Queue[Any], at: float, late: float = 0.01) -> Claim[Any]:
        clock = bucket.clock
        async with waiting_for(queue, clock) as waiting:
            await clock.advance(at - 0.01)
            assert not waiting.done()
            writes = bucket.writes
            await clock.advance(0.01 + late)
            assert bucket.writes - writes == 1
            (claim,) = waiting.result()
            return claim

    async def test_a_delay_that_is_over(self, bucket: Bucket, pair: tuple[Queue[Any], Queue[Any]]):
        await pair[1].push("work", delay=50)
        await self.woken_at(bucket, pair[0], 50)

    async def test_a_back_off_that_is_over(self, bucket: Bucket, pair: tuple[Queue[Any], Queue[Any]]):
        await pair[1].push("work")
        (claim,) = await pair[1].claim()
        await claim.fail("no luck", retry_in=50)
        assert (await self.woken_at(bucket, pair[0], 50)).job.attempt == 2

    async def test_a_release_with_a_delay(self, bucket: Bucket, pair: tuple[Queue[Any], Queue[Any]]):
        await pair[1].push("work")
        (claim,) = await pair[1].claim()
        await claim.release(delay=50)
        assert (await self.woken_at(bucket, pair[0], 50)).job.attempt == 1

    async def test_a_lease_that_ran_out(self, bucket: Bucket, client: Client):
        queue = client.queue("q")
        await queue.push("work")
        await queue.claim(lease=50)
        assert (await self.woken_at(bucket, queue, 50, late=0.26)).token == 2

    async def test_a_token_of_the_rate(self, bucket: Bucket, pair: tuple[Queue[Any], Queue[Any]]):
        await pair[1].configure(rate="1/m")
        await pair[1].push_many(["work", "work"])
        assert len(await pair[1].claim(2)) == 1
        await self.woken_at(bucket, pair[0], 60)

    async def test_a_tick_of_a_schedule(self, bucket: Bucket, client: Client):
        await client.queue("q").schedule("tick", "work", every=50)
        claim = await self.woken_at(bucket, client.queue("q"), 50, late=0.26)
        assert claim.payload == "work"

    async def test_a_head_of_an_ordered_key_whose_ttl_is_over(self, bucket: Bucket, client: Client):
        queue = client.queue("q")
        await queue.configure(ordered=True)
        await queue.push("later", key="k", delay=1_000, ttl=50)
        await queue.push("work", key="k")
        assert (await self.woken_at(bucket, queue, 50, late=0.26)).payload == "work"


async def test_a_push_of_its_own_batch_serves_a_claim_that_was_decided_before_it(queue: Queue[Any]):
    claims, job = await asyncio.gather(queue.claim(wait=10), queue.push("work"))
    assert [claim.job.id for claim in claims] == [job.id]
