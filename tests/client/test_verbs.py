from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

import bucketq
from bucketq.errors import BucketqError, JobNotFound, LeaseLost, QueueFull, SettingInvalid


async def test_a_pushed_job_shows_what_it_is(client, clock):
    mail = client.queue("mail")
    now = datetime.fromtimestamp(clock.wall_us() / 1e6, UTC)
    options = {"priority": 3, "key": "k", "dedup": "d", "headers": {"h": "v"}, "max_attempts": 2}
    job = await mail.push({"a": 1}, delay=10, ttl=60, **options)
    assert (job.queue, job.payload, job.priority, job.key, job.dedup) == ("mail", {"a": 1}, 3, "k", "d")
    assert (job.status, job.attempt, job.max_attempts, job.headers) == ("scheduled", 0, 2, {"h": "v"})
    assert job.pushed_at == now
    assert job.run_at == now + timedelta(seconds=10)
    assert job.expires_at == now + timedelta(seconds=60)
    assert job.claimed_at is job.finished_at is job.worker is job.result is job.error is job.progress is None
    assert (job.attempts, job.groups, job.duplicate, job.token) == ((), {}, False, 0)
    assert (await mail.get(job.id)).payload == {"a": 1}
    assert job.id in repr(job)


async def test_a_job_goes_from_push_to_done(client, clock):
    mail = client.queue("mail")
    job = await mail.push({"to": "x"})
    (claim,) = await mail.claim(lease=60, worker="w1")
    assert claim.job.id == job.id
    assert (claim.payload, claim.lease, claim.job.worker, claim.job.attempt) == ({"to": "x"}, 60.0, "w1", 1)
    assert claim.token == claim.job.token == 1
    await claim.heartbeat(progress={"done": 50})
    assert (await mail.get(job.id)).progress == {"done": 50}
    await claim.complete(result=[1, 2])
    done = await mail.get(job.id)
    assert (done.status, done.result) == ("done", [1, 2])
    assert done.finished_at is not None
    assert (await mail.stats()).done == 1
    for late in (claim.complete, claim.heartbeat, claim.release, lambda: claim.fail("x")):
        with pytest.raises(LeaseLost):
            await late()


async def test_a_failed_job_backs_off_and_dies_at_its_last_attempt(client, clock):
    mail = client.queue("mail")
    job = await mail.push(1, max_attempts=2)
    (claim,) = await mail.claim()
    failed = await claim.fail(ValueError("no"), retry_in=5)
    assert (failed.status, failed.error) == ("scheduled", "ValueError: no")
    assert await mail.claim() == []
    await clock.advance(5)
    (claim,) = await mail.claim()
    dead = await claim.fail("again")
    assert (dead.status, dead.error, dead.attempt) == ("dead", "again", 2)
    assert [(each.outcome, each.error) for each in dead.attempts] == [("failed", "ValueError: no"), ("failed", "again")]
    assert dead.attempts[0].claimed_at is not None
    assert [each.id for each in await mail.jobs(status="dead")] == [job.id]
    again = await mail.retry(job.id)
    assert (again.id, again.status, again.attempt) == (job.id, "ready", 0)


async def test_a_released_job_is_given_back_uncounted(client, clock):
    mail = client.queue("mail")
    await mail.push(1)
    (claim,) = await mail.claim()
    await claim.release(delay=3)
    assert await mail.claim() == []
    await clock.advance(3)
    (claim,) = await mail.claim()
    assert (claim.job.attempt, claim.token) == (1, 2)


async def test_push_many_takes_payloads_and_items_with_options_of_their_own(client):
    mail = client.queue("mail")
    jobs = await mail.push_many([1, bucketq.Push(2, priority=-1), bucketq.Push(3, key="own")], priority=5, key="all")
    assert [(job.payload, job.priority, job.key) for job in jobs] == [(1, 5, "all"), (2, -1, "all"), (3, 5, "own")]
    assert [claim.payload for claim in await mail.claim(n=1)] == [2]


async def test_an_items_own_time_replaces_the_calls(client):
    at = datetime(2026, 6, 1, tzinfo=UTC)
    first, second = await client.queue("mail").push_many([bucketq.Push(1, run_at=at), 2], delay=5)
    assert first.run_at == at
    assert second.run_at != at
    (third,) = await client.queue("mail").push_many([bucketq.Push(1, delay=1)], run_at=at)
    assert third.run_at != at


async def test_push_many_is_all_or_nothing(client):
    mail = client.queue("mail")
    await mail.configure(max_waiting=2)
    with pytest.raises(QueueFull):
        await mail.push_many([1, 2, 3])
    with pytest.raises(bucketq.PayloadInvalid):
        await mail.push_many([1, object()])
    assert (await mail.stats()).ready == 0
    assert await mail.push_many([]) == []


async def test_a_push_with_a_taken_dedup_key_returns_the_first_job(client):
    mail = client.queue("mail")
    first = await mail.push(1, dedup="d")
    second = await mail.push(2, dedup="d")
    assert (second.id, second.payload, second.duplicate) == (first.id, 1, True)
    (claim,) = await mail.claim()
    await claim.complete()
    await client.upkeep()
    third = await mail.push(3, dedup="d")
    assert (third.id, third.status, third.duplicate) == (first.id, "done", True)
    if third.pushed_at is None:  # it has left
        with pytest.raises(JobNotFound, match="only its dedup key is left"):
            _ = third.payload
        assert (third.key, third.headers, third.attempts, third.run_at) == (None, {}, (), None)


async def test_bytes_come_back_as_bytes(client):
    await client.queue("mail").push(b"\x00\xff")
    (claim,) = await client.queue("mail").claim()
    assert claim.payload == b"\x00\xff"


async def test_a_waiting_claim_gets_the_job_that_comes(client, clock):
    mail = client.queue("mail")
    waiting = asyncio.create_task(mail.claim(wait=60))
    await clock.settle()
    job = await mail.push(1)
    (claim,) = await clock.run(waiting)
    assert claim.job.id == job.id


async def test_an_empty_wait_ends_with_nothing(client, clock):
    assert await clock.run(client.queue("mail").claim(wait=5)) == []


async def test_complete_many_answers_for_each_claim_alone(client):
    mail = client.queue("mail")
    await mail.push_many([1, 2, 3])
    claims = await mail.claim(n=3)
    await claims[1].release()
    first, second, third = await mail.complete_many(claims)
    assert first is None
    assert isinstance(second, LeaseLost)
    assert third is None
    assert await mail.complete_many([]) == []
    stats = await mail.stats()
    assert (stats.done, stats.ready) == (2, 1)


async def test_auto_complete_claims_are_over(client):
    mail = client.queue("mail")
    await mail.push(1)
    (claim,) = await mail.claim(auto_complete=True)
    async with claim:
        assert claim.payload == 1
    assert (await mail.stats()).done == 1


async def test_cancel_purge_pause_and_resume(client):
    mail = client.queue("mail")
    first, *_ = await mail.push_many([1, 2, 3])
    assert (await mail.cancel(first.id)).status == "cancelled"
    await mail.pause()
    assert (await mail.settings()).paused
    assert await mail.claim() == []
    await mail.resume()
    assert len(await mail.claim()) == 1
    assert await mail.purge(status="ready") == 1
    assert (await mail.stats()).ready == 0


async def test_jobs_are_listed_page_by_page(client):
    mail = client.queue("mail")
    pushed = [job.id for job in await mail.push_many(range(5))]
    first = await mail.jobs(limit=2)
    rest = await mail.jobs(after=first[-1].id)
    assert [job.id for job in first + rest] == pushed
    assert [job.payload for job in await mail.jobs(status="scheduled")] == []


async def test_an_unknown_job_is_not_found(client):
    mail = client.queue("mail")
    for job_id in ("nonsense", "test-999", "0-1"):
        with pytest.raises(JobNotFound) as caught:
            await mail.get(job_id)
        assert caught.value.job_id == job_id


async def test_groups_see_every_job_once_each(client):
    mail = client.queue("mail")
    early = await mail.push("early")
    billing = await mail.subscribe("billing", start="all")
    await mail.subscribe("audit", start="new")
    late = await mail.push("late")
    assert (billing.name, billing.queue, billing.stats.ready) == ("billing", "mail", 1)
    assert [group.name for group in await mail.groups()] == ["audit", "billing"]
    with pytest.raises(SettingInvalid):
        await mail.claim()
    claims = await mail.claim(n=10, group="billing")
    assert [claim.job.id for claim in claims] == [early.id, late.id]
    assert claims[0].job.group == "billing"
    assert (await mail.get(late.id)).groups == {"billing": "running", "audit": "ready"}
    await claims[0].complete()
    assert await mail.unsubscribe("audit") is True
    assert await mail.unsubscribe("audit") is False


async def test_a_claim_over_several_queues_takes_them_in_order(client):
    await client.queue("b").push(2)
    await client.queue("a").push(1)
    assert [claim.payload for claim in await client.claim(["a", "b"], n=10)] == [1, 2]
    assert await client.queues() == ["a", "b"]
    await client.queue("c").push(3)
    assert [claim.payload for claim in await client.claim(None)] == [3]


async def test_a_transaction_ends_claims_and_pushes_together(client):
    mail, other = client.queue("mail"), client.queue("next", int)
    await mail.push_many([1, 2, 3])
    one, two, three = await mail.claim(n=3)
    answers = await client.transact(
        [
            bucketq.Complete(one, result="r"),
            bucketq.Fail(two, ValueError("no"), retry_in=1),
            bucketq.Release(three, delay=1),
            bucketq.PushTo("next", {"a": 1}, priority=2),
            bucketq.PushTo(other, 7),
        ]
    )
    assert answers[0] is answers[2] is None
    assert answers[1].error == "ValueError: no"
    assert (answers[3].queue, answers[3].payload, answers[3].priority) == ("next", {"a": 1}, 2)
    assert answers[4].payload == 7
    assert (await client.queue("mail").get(one.job.id)).result == "r"


async def test_a_transaction_with_a_lost_claim_does_nothing(client):
    mail = client.queue("mail")
    await mail.push_many([1, 2])
    one, two = await mail.claim(n=2)
    await two.release()
    with pytest.raises(LeaseLost):
        await client.transact([bucketq.Complete(one), bucketq.Complete(two), bucketq.PushTo("next", 1)])
    assert await client.queue("next").claim() == []
    with pytest.raises(bucketq.PayloadInvalid):
        await client.transact([bucketq.Complete(one), bucketq.PushTo(client.queue("next", int), "x")])
    await one.complete()
    assert await client.transact([]) == []


async def test_a_result_or_progress_that_would_not_come_back_is_refused(connect):
    client = await connect(payload_bytes_max=20)
    mail = client.queue("mail")
    await mail.push(1)
    (claim,) = await mail.claim()
    for use in (claim.complete, claim.heartbeat):
        with pytest.raises(bucketq.PayloadInvalid, match="lone surrogate"):
            await use("\ud800")
        with pytest.raises(bucketq.PayloadTooLarge, match="has 52 bytes; payload_bytes_max is 20"):
            await use("x" * 50)
    await claim.complete({"ok": True})


async def test_a_closed_client_refuses_every_call(client):
    mail = client.queue("mail")
    await mail.push(1)
    (claim,) = await mail.claim()
    await client.close()
    await client.close()
    for call in (lambda: mail.push(1), mail.claim, claim.complete, client.upkeep, client.queues, mail.stats):
        with pytest.raises(BucketqError, match="closed"):
            await call()
