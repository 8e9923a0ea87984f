"""What `async for claim in queue.claims():` does."""

from __future__ import annotations

import asyncio

import pytest

from bucketq.errors import BucketqError
from bucketq.queue import commands as c


async def test_claims_come_one_by_one_for_ever(client, clock):
    mail = client.queue("mail")
    seen: list[int] = []

    async def work() -> None:
        async for claim in mail.claims(n=2):
            async with claim:
                seen.append(claim.payload)

    worker = asyncio.create_task(work())
    await mail.push_many([1, 2, 3])
    await clock.advance(50)
    await mail.push(4)
    await clock.advance(1)
    assert seen == [1, 2, 3, 4]
    assert (await mail.stats()).done == 4
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker


async def test_what_was_fetched_and_not_handed_over_is_released(client):
    mail = client.queue("mail")
    await mail.push_many([1, 2, 3])
    stream = mail.claims(n=3)
    claim = await anext(stream)
    assert (await mail.stats()).running == 3
    await stream.aclose()
    assert (await mail.stats()).running == 1
    await claim.complete()
    assert [claim.job.attempt for claim in await mail.claim(n=3)] == [1, 1]


async def test_a_loop_that_is_left_releases_by_itself(client, clock):
    mail = client.queue("mail")
    await mail.push_many([1, 2, 3])
    async for _claim in mail.claims(n=3):
        break
    await clock.settle()
    assert (await mail.stats()).running == 1


async def test_closing_the_client_releases_what_a_left_loop_still_held(connect, clock):
    client = await connect()
    mail = client.queue("mail")
    await mail.push_many([1, 2, 3])
    stream = mail.claims(n=3)
    await anext(stream)
    await client.close()
    assert (await (await connect()).queue("mail").stats()).running == 1
    with pytest.raises(BucketqError, match="closed"):
        await anext(stream)
    await stream.aclose()


async def test_claims_that_wait_for_their_turn_keep_their_leases(client, clock):
    mail = client.queue("mail")
    await mail.configure(lease=30)
    await mail.push_many([1, 2, 3])
    tokens = []
    async for claim in mail.claims(n=3):
        async with claim:
            await clock.advance(100)
            tokens.append(claim.token)
        if len(tokens) == 3:
            break
    assert tokens == [1, 1, 1]


async def test_a_claim_lost_while_it_waits_for_its_turn_is_left_out(client, clock):
    mail = client.queue("mail")
    await mail.configure(lease=30)
    first, second, third = await mail.push_many([1, 2, 3])
    stream = mail.claims(n=3)
    assert (await anext(stream)).job.id == first.id
    await mail.cancel(second.id)
    await clock.advance(10)
    assert (await anext(stream)).job.id == third.id
    await stream.aclose()


async def test_auto_completed_claims_are_handed_over_without_beats(client, clock, tap):
    mail = client.queue("mail")
    await mail.push_many([1, 2])
    stream = mail.claims(n=2, auto_complete=True)
    await anext(stream)
    await clock.advance(100)
    await stream.aclose()
    assert tap.of(c.Heartbeat) == tap.of(c.Release) == []
    assert (await mail.stats()).done == 2
