"""Wall clocks jump and disagree: no lease ends early by it, and no job is late by more than its delay."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from bucketq import Client, LeaseLost, Queue, SettingInvalid
from bucketq.testing import Clock, MemoryStore
from tests.commit.support import Bucket

MINUTE = 60
DAY = 86_400
JUMPS = [6 * MINUTE, -6 * MINUTE, DAY, -DAY]


class TestAJumpOfTheWallClock:
    @pytest.mark.parametrize("jump", JUMPS)
    async def test_ends_no_lease(self, queue: Queue[Any], clock: Clock, jump: float):
        await queue.push("work")
        (claim,) = await queue.claim(lease=30)
        await clock.advance(10)
        clock.jump_wall(jump)
        await clock.advance(19)
        await queue.push("a commit at the new time")
        await clock.advance(0.5)
        assert (await queue.get(claim.job.id)).status == "running"
        await claim.complete()

    @pytest.mark.parametrize("jump", JUMPS)
    async def test_and_back_ends_no_lease_and_keeps_none_alive(self, queue: Queue[Any], clock: Clock, jump: float):
        await queue.push("work")
        (claim,) = await queue.claim(lease=30)
        clock.jump_wall(jump)
        await queue.push("a commit at that time")
        await clock.advance(10)
        clock.jump_wall(-jump)
        await queue.push("a commit at this time")
        await clock.advance(19)
        await claim.heartbeat()
        await clock.advance(29)
        assert (await queue.get(claim.job.id)).status == "running"
        await clock.advance(2)
        with pytest.raises(LeaseLost):
            await claim.complete()

    @pytest.mark.parametrize("jump", JUMPS)
    async def test_of_who_watches_ends_no_lease_that_began_after_it(self, bucket: Bucket, clock: Clock, jump: float):
        """It saw that the claim was not there before: it can't be older than that, whatever its wall clock says."""
        machine = clock.machine()
        watcher = (await bucket.connect(bucket.inner, machine)).queue("q")
        queue = (await bucket.connect()).queue("q")
        await queue.push("work")
        assert (await watcher.stats()).ready == 1
        machine.jump_wall(jump)
        (claim,) = await queue.claim(lease=30)
        assert (await watcher.stats()).running == 1
        await clock.advance(20)
        assert (await watcher.stats()).running == 1
        await claim.heartbeat()
        await clock.advance(20)
        assert (await watcher.stats()).running == 1
        await claim.complete()

    @pytest.mark.parametrize("jump", JUMPS)
    async def test_does_not_run_what_is_delayed_before_its_delay_is_over(
        self, queue: Queue[Any], clock: Clock, jump: float
    ):
        """A delay is counted on commit time, which a jump forth moves on and a jump back leaves."""
        clock.jump_wall(jump)
        job = await queue.push("later", delay=100)
        await clock.advance(99)
        assert (await queue.get(job.id)).status == "scheduled"
        await clock.advance(1)
        assert (await queue.get(job.id)).status == "ready"

    @pytest.mark.parametrize("jump", [-6 * MINUTE, -DAY])
    async def test_back_does_not_keep_what_is_delayed_any_longer(self, queue: Queue[Any], clock: Clock, jump: float):
        job = await queue.push("later", delay=100)
        waiting = asyncio.create_task(queue.claim(wait=200))
        await clock.advance(50)
        clock.jump_wall(jump)
        await queue.push("a commit at the new time", key="other", delay=1_000)
        await clock.advance(49.9)
        assert not waiting.done()
        await clock.advance(0.2)
        assert [claim.job.id for claim in waiting.result()] == [job.id]

    @pytest.mark.parametrize("jump", JUMPS)
    async def test_leaves_commit_time_growing(self, bucket: Bucket, queue: Queue[Any], clock: Clock, jump: float):
        times = []
        for seconds in (0, jump, -2 * jump, jump):
            clock.jump_wall(seconds)
            await queue.push("tick")
            times.append((await bucket.document()).root.time_us)
            await clock.advance(1)
        assert times == sorted(times)
        assert all(later - earlier >= 1_000_000 for earlier, later in pairwise(times))

    async def test_back_while_nobody_runs_leaves_commit_time_growing(
        self, bucket: Bucket, queue: Queue[Any], clock: Clock
    ):
        await queue.push("before")
        before = (await bucket.document()).root.time_us
        clock.jump_wall(-DAY)
        await (await bucket.other()).queue("q").push("after")
        assert (await bucket.document()).root.time_us >= before

    async def test_leaves_a_dedup_window_its_length(self, queue: Queue[Any], clock: Clock):
        first = await queue.push("once", dedup="d", dedup_window=100)
        clock.jump_wall(-DAY)
        await clock.advance(99)
        assert (await queue.push("once", dedup="d")).id == first.id
        await clock.advance(1)
        assert (await queue.push("once", dedup="d")).id != first.id


class TestTwoMachines:
    @pytest.mark.parametrize("off", [6 * MINUTE, -6 * MINUTE])
    async def test_six_minutes_apart_work_together(self, bucket: Bucket, client: Client, clock: Clock, off: float):
        ours = client.queue("q")
        theirs = (await bucket.connect(bucket.inner, clock.machine(off), worker="they")).queue("q")
        await ours.push_many(range(4))
        mine, yours = (await ours.claim(lease=30))[0], (await theirs.claim(lease=30))[0]
        for _ in range(5):
            await clock.advance(20)
            await mine.heartbeat()
            await yours.heartbeat()
        later = await theirs.push("later", delay=50, priority=-1)
        await clock.advance(10)
        assert (await ours.get(later.id)).status == "scheduled"
        assert (await theirs.get(later.id)).status == "scheduled"
        await mine.complete()
        await yours.complete()
        await clock.advance(41)
        assert [claim.job.id for claim in await theirs.claim()] == [later.id]
        assert (await theirs.stats()).done == 2
        await bucket.state()

    async def test_a_clock_that_drifts_is_no_obstacle(self, bucket: Bucket, client: Client, clock: Clock):
        theirs = (await bucket.connect(bucket.inner, clock.machine(drift_ppm=20_000), worker="they")).queue("q")
        await client.queue("q").push("work")
        (claim,) = await client.queue("q").claim(lease=30)
        for _ in range(20):
            await clock.advance(28)
            await claim.heartbeat()
            assert (await theirs.stats()).running == 1
        await claim.complete()


class TestAtTheStart:
    @pytest.mark.parametrize("off", [DAY, -DAY, 601, -601])
    async def test_a_clock_too_far_from_the_stores_is_refused(self, clock: Clock, bucket: Bucket, off: float):
        store = MemoryStore(clock.machine(off))
        with pytest.raises(SettingInvalid, match="clock"):
            await bucket.connect(store, probe=True)
        assert [key async for key in store.list("")] == []

    @pytest.mark.parametrize("off", [599, -599])
    async def test_within_the_limit_it_is_not(self, clock: Clock, bucket: Bucket, off: float):
        client = await bucket.connect(MemoryStore(clock.machine(off)), probe=True)
        assert await client.queues() == []

    async def test_the_limit_is_a_setting(self, clock: Clock, bucket: Bucket):
        client = await bucket.connect(MemoryStore(clock.machine(DAY)), probe=True, clock_skew_max=2 * DAY)
        assert await client.queues() == []
