"""Whatever a client stores, the next one can read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bucketq import Client, Push, Queue, StoreError
from bucketq.testing import Fault
from tests.commit.support import Bucket


@pytest.mark.parametrize("result", ["text", "", 0, 1.5, [], {}, {"a": {}}, False])
async def test_a_result_is_there_for_another_client(bucket: Bucket, queue: Queue[Any], result: object):
    job = await queue.push("work")
    (claim,) = await queue.claim()
    await claim.complete(result)
    other = await bucket.other()
    assert (await other.queue("q").get(job.id)).result == result


async def test_progress_is_there_for_another_client(bucket: Bucket, queue: Queue[Any]):
    await queue.push("work")
    (claim,) = await queue.claim()
    await claim.heartbeat({"rows": 17})
    other = await bucket.other()
    assert (await other.queue("q").get(claim.job.id)).progress == {"rows": 17}


async def test_the_stored_state_is_the_one_in_memory(bucket: Bucket, client: Client):
    queue = client.queue("q")
    await queue.configure(ordered=True, max_running=3, rate="100/m", lease=20, retention=None)
    await queue.push_many(
        [Push(n, key=f"k{n % 3}", priority=n % 2, dedup=f"d{n}", headers={"n": str(n)}) for n in range(9)]
    )
    await queue.push(b"\x00\xff", delay=5, ttl=60, max_attempts=1)
    for claim in await queue.claim(3):
        await (claim.fail("no luck") if claim.payload % 2 else claim.complete())
    await queue.schedule("tick", {"at": "noon"}, cron="0 12 * * *", timezone="Europe/Berlin")
    await client.queue("p").subscribe("billing")
    await client.queue("p").push("seen")
    await client.queue("p").claim(group="billing")
    state = await bucket.state()
    memory = client._session.port.state.rows()  # type: ignore[attr-defined]
    assert state.rows() == memory
    await bucket.run(client.upkeep())
    assert (await bucket.state()).rows() == client._session.port.state.rows()  # type: ignore[attr-defined]


async def test_jobs_stay_in_line_when_one_that_was_to_leave_stays(bucket: Bucket, queue: Queue[Any], client: Client):
    """A removal that is taken back must not move the job's row to the end of the stored list."""
    first, second, _ = await queue.push_many(["first", "second", "third"])
    one, two = await queue.claim(2)
    await one.fail("no luck", dead=True)
    await bucket.run(client.upkeep())
    bucket.faulty.next("write", Fault.ERROR, key="queue.json")
    purging = asyncio.create_task(queue.purge(status="dead"))
    cancelling = asyncio.create_task(queue.cancel(second.id))
    completing = asyncio.create_task(two.complete())
    await asyncio.wait([purging, cancelling, completing])
    assert isinstance(purging.exception(), StoreError)
    assert isinstance(cancelling.exception(), StoreError)
    assert completing.exception() is None
    await bucket.state()
    other = await bucket.other()
    assert [job.payload for job in await other.queue("q").jobs()] == ["first", "second", "third"]
    assert [job.payload for job in await other.queue("q").jobs(after=first.id)] == ["second", "third"]
