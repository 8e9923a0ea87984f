"""A worker whose job was taken over can't do anything to it any more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bucketq import Claim, Client, Complete, LeaseLost, PushTo, Queue
from bucketq.testing import Clock
from tests.commit.support import Bucket

ACTS: dict[str, Callable[[Client, Claim[Any]], Awaitable[Any]]] = {
    "complete": lambda client, claim: claim.complete("stale"),
    "fail": lambda client, claim: claim.fail("stale"),
    "bury": lambda client, claim: claim.fail("stale", dead=True),
    "release": lambda client, claim: claim.release(),
    "heartbeat": lambda client, claim: claim.heartbeat("stale"),
    "transact": lambda client, claim: client.transact([PushTo("next", "stale"), Complete(claim)]),
}


@pytest.fixture(params=["same", "another"])
async def successor(request: pytest.FixtureRequest, bucket: Bucket, client: Client) -> Client:
    return client if request.param == "same" else await bucket.other()


@pytest.mark.parametrize("kind", ACTS)
async def test_it_is_told_and_the_new_worker_does_not_notice(
    bucket: Bucket, client: Client, queue: Queue[Any], successor: Client, kind: str
):
    await queue.push("work")
    (stale,) = await queue.claim(lease=5)
    (current,) = await bucket.run(successor.queue("q").claim(wait=10, lease=60))
    assert current.token > stale.token
    with pytest.raises(LeaseLost):
        await ACTS[kind](client, stale)
    assert stale.lost or kind == "transact"
    job = await queue.get(current.job.id)
    assert (job.status, job.token, job.worker, job.progress) == ("running", current.token, current.job.worker, None)
    assert "next" not in await client.queues()
    await current.complete()
    await bucket.run(client.upkeep())
    (record,) = await bucket.records()
    assert [attempt.outcome for attempt in record.attempts] == ["lost", "done"]
    assert record.error is None


@pytest.mark.parametrize("kind", ACTS)
async def test_after_the_end_of_the_job_as_well(bucket: Bucket, client: Client, queue: Queue[Any], kind: str):
    await queue.push("work")
    (stale,) = await queue.claim(lease=5)
    (current,) = await bucket.run(queue.claim(wait=10))
    await current.complete()
    await bucket.run(client.upkeep())
    with pytest.raises(LeaseLost):
        await ACTS[kind](client, stale)
    assert len(await bucket.records()) == 1


@pytest.mark.parametrize("kind", ACTS)
async def test_a_second_end_of_the_same_claim_is_refused(bucket: Bucket, client: Client, queue: Queue[Any], kind: str):
    await queue.push("work")
    (claim,) = await queue.claim()
    await claim.complete()
    with pytest.raises(LeaseLost):
        await ACTS[kind](client, claim)
    await bucket.run(client.upkeep())
    assert [record.ending for record in await bucket.records()] == [1]


async def test_a_heartbeat_in_the_batch_of_its_expiry_comes_first(queue: Queue[Any], clock: Clock):
    await queue.push("work")
    (claim,) = await queue.claim(lease=5)
    for _ in range(10):
        await clock.advance(4.9)
        await claim.heartbeat()
    assert (await queue.get(claim.job.id)).status == "running"
    await claim.complete()


async def test_a_lease_of_another_client_is_watched_from_the_moment_it_is_seen(
    bucket: Bucket, queue: Queue[Any], clock: Clock
):
    other = (await bucket.other()).queue("q")
    await queue.push("work")
    await queue.claim(lease=10)
    await clock.advance(5)
    assert (await other.stats()).running == 1
    await clock.advance(4)
    assert (await other.stats()).running == 1
    await clock.advance(6)
    assert (await other.stats()).running == 0
    job = (await other.jobs())[0]
    assert [attempt.outcome for attempt in job.attempts] == ["lost"]
