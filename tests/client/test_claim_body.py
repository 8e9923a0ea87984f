"""What `async with claim:` does."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

import bucketq
from bucketq.errors import BucketqError, Conflict, LeaseLost, OutcomeUnknown, PayloadInvalid, StoreError
from bucketq.queue import commands as c


@pytest.fixture
async def mail(client):
    queue = client.queue("mail")
    await queue.configure(lease=30, backoff=0, keep_finished=3_600)
    return queue


@pytest.fixture
async def claim(mail):
    await mail.push("work")
    (claim,) = await mail.claim()
    return claim


async def test_the_end_of_the_body_completes_the_job(mail, claim):
    async with claim as same:
        assert same is claim
        claim.set_result({"sum": 3})
    job = await mail.get(claim.job.id)
    assert (job.status, job.result) == ("done", {"sum": 3})


async def test_an_exception_fails_the_job_and_goes_on(mail, claim):
    with pytest.raises(ValueError, match="no"):
        async with claim:
            raise ValueError("no")
    job = await mail.get(claim.job.id)
    assert (job.status, job.error, job.attempt) == ("ready", "ValueError: no", 1)


async def test_a_result_that_cannot_be_kept_fails_the_job(mail, claim):
    with pytest.raises(PayloadInvalid):
        async with claim:
            claim.set_result(object())
    assert (await mail.get(claim.job.id)).error.startswith("PayloadInvalid: result: ")


async def test_a_failure_that_cannot_be_recorded_does_not_hide_the_exception(claim, tap):
    tap.errors[c.Fail] = StoreError("the disk is full")
    with pytest.raises(ValueError, match="no") as caught:
        async with claim:
            raise ValueError("no")
    assert "was not recorded: the disk is full" in caught.value.__notes__[0]


async def test_a_completion_that_cannot_be_written_is_raised(claim, tap):
    tap.errors[c.Complete] = StoreError("the disk is full")
    with pytest.raises(StoreError, match="full"):
        async with claim:
            pass


async def test_cancellation_from_outside_releases_the_job(mail, claim):
    inside = asyncio.Event()

    async def work() -> None:
        async with claim:
            inside.set()
            await asyncio.Future()

    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    job = await mail.get(claim.job.id)
    assert (job.status, job.attempt) == ("ready", 0)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
async def test_an_interruption_releases_the_job(mail, claim, interruption):
    # the loop itself would end, were it raised from a task of its own
    with pytest.raises(interruption):
        async with claim:
            raise interruption
    assert (await mail.get(claim.job.id)).attempt == 0


async def test_a_release_that_fails_does_not_hide_the_cancellation(claim, tap):
    tap.errors[c.Release] = StoreError("gone")
    with pytest.raises(asyncio.CancelledError):
        async with claim:
            raise asyncio.CancelledError


@pytest.mark.parametrize("end", ["complete", "fail", "release"])
async def test_a_body_that_ends_the_claim_itself_has_the_last_word(mail, claim, tap, end):
    async with claim:
        await {"complete": claim.complete, "fail": lambda: claim.fail("own words"), "release": claim.release}[end]()
    ends = [command for command in tap.seen if isinstance(command, c.Complete | c.Fail | c.Release)]
    assert len(ends) == 1


async def test_an_exception_after_the_body_ended_the_claim_changes_nothing(mail, claim):
    async def work() -> None:
        async with claim:
            await claim.complete()
            raise ValueError("late")

    with pytest.raises(ValueError, match="late"):
        await work()
    assert (await mail.get(claim.job.id)).status == "done"


async def test_a_transaction_or_complete_many_inside_ends_the_claim_too(client, mail, tap):
    await mail.push_many([1, 2])
    one, two = await mail.claim(n=2)
    async with one:
        await client.transact([bucketq.Complete(one)])
    async with two:
        await mail.complete_many([two])
    assert tap.of(c.Complete) == []


async def test_it_beats_every_third_of_the_lease(mail, claim, tap, clock):
    async with claim:
        await clock.advance(9.9)
        assert tap.of(c.Heartbeat) == []
        await clock.advance(0.1)
        assert len(tap.of(c.Heartbeat)) == 1
        await clock.advance(80)
        assert len(tap.of(c.Heartbeat)) == 9
    await clock.advance(100)
    assert len(tap.of(c.Heartbeat)) == 9
    assert (await mail.get(claim.job.id)).status == "done"


@pytest.mark.parametrize("error", [StoreError("x"), OutcomeUnknown("x"), Conflict("x"), BucketqError("x")])
async def test_a_beat_that_fails_is_repeated_and_the_body_goes_on(mail, claim, tap, clock, error):
    async with claim:
        tap.errors[c.Heartbeat] = error
        await clock.advance(10)
        del tap.errors[c.Heartbeat]
        await clock.advance(50)
        assert not claim.lost
    assert (await mail.get(claim.job.id)).status == "done"


async def test_a_beat_that_hangs_is_not_doubled(claim, tap, clock):
    tap.gates[c.Heartbeat] = asyncio.Event()
    async with claim:
        await clock.advance(25)
        assert len(tap.of(c.Heartbeat)) == 1


async def test_a_lost_lease_cancels_the_body_and_comes_out_as_lease_lost(mail, claim, clock):
    seen = []

    async def work() -> None:
        async with claim:
            try:
                await asyncio.Future()
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

    task = asyncio.create_task(work())
    await clock.settle()
    await mail.cancel(claim.job.id)
    await clock.advance(10)
    with pytest.raises(LeaseLost) as caught:
        await task
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)
    assert seen == ["cancelled"]
    assert claim.lost
    assert task.cancelling() == 0


async def test_the_task_can_go_on_after_a_lost_lease(mail, claim, clock):
    async def work() -> str:
        with pytest.raises(LeaseLost):
            async with claim:
                await asyncio.Future()
        await asyncio.sleep(0)
        async with asyncio.timeout(60):
            await asyncio.sleep(0)
        return "went on"

    task = asyncio.create_task(work())
    await clock.settle()
    await mail.cancel(claim.job.id)
    await clock.advance(10)
    assert await task == "went on"


async def test_a_body_cancelled_from_outside_at_the_same_time_stays_cancelled(mail, claim, tap, clock):
    task = asyncio.create_task(wait_inside(claim))
    await clock.settle()
    await mail.cancel(claim.job.id)
    tap.gates[c.Heartbeat] = asyncio.Event()
    await clock.advance(10)
    assert tap.of(c.Heartbeat)
    tap.gates[c.Heartbeat].set()
    # the beat's answer and the cancellation from outside reach the body in the same turn of the loop
    while not claim.lost:  # noqa: ASYNC110
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def wait_inside(claim: bucketq.Claim[Any]) -> None:
    async with claim:
        await asyncio.Future()


async def test_two_lost_leases_in_one_task_come_out_as_one_lease_lost(mail, clock):
    await mail.push_many([1, 2])
    one, two = await mail.claim(n=2)

    async def work() -> None:
        async with one, two:
            await asyncio.Future()

    task = asyncio.create_task(work())
    await clock.settle()
    await mail.cancel(one.job.id)
    await mail.cancel(two.job.id)
    await clock.advance(10)
    with pytest.raises(LeaseLost):
        await task
    assert task.cancelling() == 0


async def test_an_inner_lost_lease_fails_the_outer_job(mail, clock):
    await mail.push_many([1, 2])
    outer, inner = await mail.claim(n=2)

    async def work() -> None:
        async with outer, inner:
            await asyncio.Future()

    task = asyncio.create_task(work())
    await clock.settle()
    await mail.cancel(inner.job.id)
    await clock.advance(10)
    with pytest.raises(LeaseLost):
        await task
    assert (await mail.get(outer.job.id)).error.startswith("LeaseLost: ")


async def test_a_body_that_swallows_the_cancellation_still_gets_lease_lost(mail, claim, clock):
    async def work() -> None:
        async with claim:
            try:
                await asyncio.Future()
            except asyncio.CancelledError:
                pass

    task = asyncio.create_task(work())
    await clock.settle()
    await mail.cancel(claim.job.id)
    await clock.advance(10)
    with pytest.raises(LeaseLost):
        await task
    assert task.cancelling() == 0


async def test_an_error_in_a_cancelled_bodys_own_cleaning_up_comes_out(mail, claim, clock):
    async def work() -> None:
        async with claim:
            try:
                await asyncio.Future()
            finally:
                raise ValueError("while cleaning up")

    task = asyncio.create_task(work())
    await clock.settle()
    await mail.cancel(claim.job.id)
    await clock.advance(10)
    with pytest.raises(ValueError, match="while cleaning up"):
        await task
    assert task.cancelling() == 0


async def test_the_bodys_own_heartbeat_tells_it_and_the_end_does_not_try_again(mail, claim, tap):
    await mail.cancel(claim.job.id)
    with pytest.raises(LeaseLost):
        async with claim:
            await claim.heartbeat()
    assert tap.of(c.Fail) == tap.of(c.Complete) == []


async def test_a_body_that_ignores_its_own_lost_heartbeat_does_not_end_in_silence(mail, claim):
    async def work() -> None:
        async with claim:
            with suppress(LeaseLost):
                await claim.heartbeat()

    await mail.cancel(claim.job.id)
    with pytest.raises(LeaseLost):
        await work()


async def test_a_beat_overtaken_by_the_claims_own_end_does_not_cancel_the_body(mail, claim, tap, clock):
    async with claim:
        tap.gates[c.Heartbeat] = asyncio.Event()
        await clock.advance(10)
        await claim.complete()
        tap.gates[c.Heartbeat].set()
        await clock.advance(30)
    assert not claim.lost


async def test_a_beat_answered_while_the_completion_is_under_way_does_not_cancel_the_body(mail, claim, tap, clock):
    async def work() -> str:
        async with claim:
            await clock.advance(1)
            await claim.complete()
        return "done"

    tap.gates[c.Complete] = asyncio.Event()
    task = asyncio.create_task(work())
    await tap.reached.wait()
    tap.errors[c.Heartbeat] = LeaseLost("it is complete")
    await clock.advance(10)
    assert len(tap.of(c.Heartbeat)) == 1
    tap.gates[c.Complete].set()
    assert await task == "done"


async def test_a_claim_is_in_one_body_at_a_time(claim):
    async with claim:
        with pytest.raises(BucketqError, match="already in use"):
            await claim.__aenter__()


async def test_a_claim_known_to_be_lost_is_not_begun(mail, claim):
    await mail.cancel(claim.job.id)
    with pytest.raises(LeaseLost):
        await claim.heartbeat()
    with pytest.raises(LeaseLost):
        async with claim:
            pytest.fail("the body must not run")


async def test_a_closed_coroutine_does_not_try_to_wait(mail, claim):
    async def work() -> None:
        async with claim:
            await asyncio.Future()

    coroutine = work()
    coroutine.send(None)
    coroutine.close()
    assert (await mail.get(claim.job.id)).status == "running"
