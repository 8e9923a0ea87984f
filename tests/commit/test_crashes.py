"""The process dies between any two requests: whoever comes next finds everything, once."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from bucketq import BucketqError, Client
from bucketq.testing import Crash
from tests.commit.support import Bucket, FileBucket

When = Literal["before", "after"]


class Life:
    """What a process does, and what it was told before it died."""

    def __init__(self) -> None:
        self.pushed: list[str] = []
        self.claimed: list[str] = []
        self.ended: dict[str, str] = {}

    async def live(self, bucket: Bucket) -> None:
        client = await bucket.connect(worker="mortal")
        queue = client.queue("q")
        self.pushed += [job.id for job in await queue.push_many(range(5))]
        for number in range(2):
            first, second = await queue.claim(2)
            self.claimed += [first.job.id, second.job.id]
            await first.complete()
            self.ended[first.job.id] = "done"
            await second.fail("no luck", dead=True)
            self.ended[second.job.id] = "dead"
            await bucket.run(client.upkeep())
            self.pushed.append((await queue.push(f"after {number}", dedup=f"d{number}")).id)
        dead = self.claimed[-1]
        self.pushed.append((await queue.retry(dead)).id)
        del self.ended[dead]
        (last,) = await queue.claim()
        await last.complete()
        self.ended[last.job.id] = "done"
        await bucket.run(client.close())


async def die_at(bucket: Bucket, number: int, when: When) -> Life:
    life = Life()
    bucket.faulty.crash_at(number, when)
    try:
        await life.live(bucket)
    except (Crash, BucketqError):
        assert bucket.faulty.crashed
    return life


async def check(bucket: Bucket, life: Life, client: Client) -> None:
    """Accepted jobs are there or in the archive; what was told to have ended has; nothing ended twice."""
    await bucket.state()
    jobs = {job.id: job for job in await client.queue("q").jobs()}
    records = await bucket.records()
    last = {record.id: record.status for record in records}
    for id_ in life.pushed:
        assert id_ in jobs or id_ in last
    for id_, status in life.ended.items():
        assert last[id_] == status
    for id_ in life.claimed:
        assert id_ in last or jobs[id_].status in ("running", "ready")
    assert [record.ending for record in records if record.status == "done"] == [1] * list(last.values()).count("done")
    stats = await client.queue("q").stats()
    statuses = [record.status for record in records]
    assert (stats.done, stats.died) == (statuses.count("done"), statuses.count("dead"))


async def requests_of_a_life() -> int:
    bucket = Bucket()
    life = Life()
    await life.live(bucket)
    client = await bucket.other()
    await check(bucket, life, client)
    await bucket.close()
    return sum(bucket.faulty.calls.values())


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("place", ["memory", "file"])
async def test_nothing_is_lost_or_doubled_wherever_it_dies(when: When, place: str, tmp_path: Path):
    count = await requests_of_a_life()
    assert count > 15
    for number in range(1, count + 1):
        bucket = FileBucket(tmp_path / str(number)) if place == "file" else Bucket()
        life = await die_at(bucket, number, when)
        assert bucket.faulty.crashed
        heir = await bucket.other()
        await heir.queue("p").push("goes on")
        await bucket.run(heir.upkeep())
        await check(bucket, life, heir)
        assert (await bucket.document()).root.segment is None
        await heir.close()
        await bucket.close()


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_process_that_runs_beside_it_finishes_its_work_by_itself(when: When):
    count = await requests_of_a_life()
    for number in range(1, count + 1):
        bucket = Bucket()
        beside = await bucket.other()
        life = await die_at(bucket, number, when)
        assert bucket.faulty.crashed
        await beside.queue("p").push("goes on")
        await bucket.clock.advance(65)
        await check(bucket, life, beside)
        root = (await bucket.document()).root
        assert root.segment is None
        assert root.sealed_last == root.next_ending - 1
        await beside.close()


@pytest.mark.parametrize("when", ["before", "after"])
async def test_its_running_jobs_are_done_by_others_once_their_lease_is_over(when: When):
    for number in range(1, 8):
        bucket = Bucket()
        life = await die_at(bucket, number, when)
        heir = await bucket.other()
        queue = heir.queue("q")
        done: list[str] = []
        while claims := await bucket.run(queue.claim(10, wait=40)):
            done += [claim.job.id for claim in claims]
            assert await queue.complete_many(claims) == [None] * len(claims)
        await bucket.run(heir.upkeep())
        records = [record.id for record in await bucket.records()]
        assert len(records) == len(set(records))
        assert {*done, *life.ended, *life.pushed} <= set(records)
        assert (await queue.stats()).running == 0
        await heir.close()
