"""Whose commit was it? The table of writers remembers 1,024 of them; past that, nobody guesses."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from bucketq import Client, OutcomeUnknown, Queue
from bucketq.queue.state import WRITERS_MAX
from bucketq.testing import Fault
from tests.commit.support import Bucket


async def interrupted(bucket: Bucket, call: Coroutine[Any, Any, Any], fault: Fault, writers: int) -> asyncio.Task[Any]:
    """The call's write meets a fault; before it is sent again, so many others commit."""
    bucket.faulty.next("write", fault, key="queue.json")
    again = bucket.hold("write", skip=1)
    acting = asyncio.create_task(bucket.run(call))
    await again.arrived()
    await bucket.crowd(writers)
    again.release()
    await asyncio.wait([acting])
    return acting


async def test_it_says_so_while_it_remembers(bucket: Bucket, queue: Queue[Any]):
    await queue.push("before")
    acting = await interrupted(bucket, queue.push("mine"), Fault.REPLY_LOST, WRITERS_MAX - 1)
    job = acting.result()
    assert [(found.id, found.payload) for found in await bucket.run(queue.jobs())][1:] == [(job.id, "mine")]
    assert (await bucket.document()).root.floor == 0


async def test_past_that_the_outcome_is_unknown_and_the_job_is_stored_once(bucket: Bucket, queue: Queue[Any]):
    await queue.push("before")
    acting = await interrupted(bucket, queue.push("mine", dedup="d"), Fault.REPLY_LOST, WRITERS_MAX)
    assert isinstance(acting.exception(), OutcomeUnknown)
    again = await bucket.run(queue.push("mine", dedup="d"))
    assert again.duplicate
    assert [job.payload for job in await bucket.run(queue.jobs())] == ["before", "mine"]


async def test_a_commit_beyond_the_floor_that_is_not_in_the_table_was_not_made(bucket: Bucket, queue: Queue[Any]):
    await queue.push("before")
    acting = await interrupted(bucket, queue.push("mine"), Fault.REQUEST_LOST, WRITERS_MAX)
    acting.result()
    assert [job.payload for job in await bucket.run(queue.jobs())] == ["before", "mine"]
    assert (await bucket.document()).root.floor > 0


async def test_one_at_the_floor_may_have_been(bucket: Bucket, queue: Queue[Any]):
    await queue.push("before")
    acting = await interrupted(bucket, queue.push("mine"), Fault.REQUEST_LOST, WRITERS_MAX + 1)
    assert isinstance(acting.exception(), OutcomeUnknown)
    assert [job.payload for job in await bucket.run(queue.jobs())] == ["before"]


async def test_a_neighbour_of_an_unknown_outcome_is_decided_on_what_is_stored(bucket: Bucket, client: Client):
    """The version that was read last is not that of the state in memory: writing then would undo what others did."""
    queue = client.queue("q")
    await queue.push("one")
    other = await bucket.other()
    bucket.faulty.next("write", Fault.REPLY_LOST, key="queue.json")
    again = bucket.hold("write", skip=1)
    claiming = [asyncio.create_task(queue.claim(worker=name)) for name in ("first", "second")]
    counting = asyncio.create_task(client.queue("theirs").stats())
    running = asyncio.create_task(bucket.run(asyncio.wait([*claiming, counting])))
    await again.arrived()
    await other.queue("theirs").push("precious")
    await bucket.crowd(WRITERS_MAX)
    again.release()
    await running
    assert isinstance(claiming[0].exception(), OutcomeUnknown)
    assert claiming[1].result() == []
    assert counting.result().ready == 1
    fresh = await bucket.other()
    assert [job.payload for job in await fresh.queue("theirs").jobs()] == ["precious"]
    assert [job.worker for job in await fresh.queue("q").jobs(status="running")] == ["first"]
    await bucket.state()


async def test_many_short_lived_clients_leave_at_most_that_many_rows(bucket: Bucket):
    await (await bucket.other()).queue("q").push("first")
    await bucket.crowd(WRITERS_MAX - 3)
    for number in range(5):
        client = await bucket.other()
        await client.queue("q").push(number)
        await client.close()
    root = (await bucket.document()).root
    assert len(root.writers) == WRITERS_MAX
    assert (await bucket.state()).floor == 3
