"""The reply, or the request, is lost: the caller gets its answer all the same, and nothing is done twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bucketq import OutcomeUnknown
from bucketq.testing import Fault
from tests.commit.deeds import DEEDS, Deed
from tests.commit.support import Bucket

pytestmark = pytest.mark.parametrize("kind", DEEDS)

QUEUE_KEY = "queue.json"


async def prepared(bucket: Bucket, kind: str, **settings: Any) -> Deed:
    deed = DEEDS[kind](await bucket.connect(**settings), bucket)
    await deed.prepare()
    return deed


async def finish(bucket: Bucket, deed: Deed, answer: object) -> None:
    await deed.check(answer)
    await bucket.state()


@pytest.mark.parametrize("fault", [Fault.REPLY_LOST, Fault.REQUEST_LOST, Fault.DUPLICATED])
async def test_what_was_sent_once_is_done_once(any_bucket: Bucket, kind: str, fault: Fault):
    deed = await prepared(any_bucket, kind)
    any_bucket.faulty.next("write", fault, key=QUEUE_KEY)
    answer = await any_bucket.run(deed.act())
    assert any_bucket.faulty.fired[fault] == 1
    await finish(any_bucket, deed, answer)


@pytest.mark.parametrize("fault", [Fault.REPLY_LOST, Fault.REQUEST_LOST, Fault.DUPLICATED])
async def test_another_writer_in_between_changes_nothing_about_it(any_bucket: Bucket, kind: str, fault: Fault):
    deed = await prepared(any_bucket, kind)
    other = await any_bucket.other()
    any_bucket.faulty.next("write", fault, key=QUEUE_KEY)
    again = any_bucket.hold("get") if fault is Fault.DUPLICATED else any_bucket.hold("write", skip=1)
    acting = asyncio.create_task(any_bucket.run(deed.act()))
    await again.arrived()
    foreign = await other.queue("foreign").push("theirs")
    again.release()
    await finish(any_bucket, deed, await acting)
    assert [job.id for job in await deed.client.queue("foreign").jobs()] == [foreign.id]


async def test_a_reply_that_is_lost_again_and_again_is_still_one_write(bucket: Bucket, kind: str):
    deed = await prepared(bucket, kind)
    bucket.faulty.next("write", Fault.REPLY_LOST, key=QUEUE_KEY)
    bucket.faulty.next("write", Fault.REQUEST_LOST, key=QUEUE_KEY, times=4)
    await finish(bucket, deed, await bucket.run(deed.act()))


class TestLate:
    async def test_applied_before_it_is_sent_again(self, bucket: Bucket, kind: str):
        deed = await prepared(bucket, kind)
        bucket.faulty.next("write", Fault.LATE, key=QUEUE_KEY, late_after=1)
        await finish(bucket, deed, await bucket.run(deed.act()))

    async def test_applied_after_it_was_sent_again(self, bucket: Bucket, kind: str):
        deed = await prepared(bucket, kind)
        bucket.faulty.next("write", Fault.LATE, key=QUEUE_KEY)
        answer = await bucket.run(deed.act())
        assert await bucket.faulty.deliver_late() == 1
        await finish(bucket, deed, answer)

    @pytest.mark.parametrize("late_first", [True, False])
    async def test_applied_around_another_writers_commit(self, bucket: Bucket, kind: str, late_first: bool):
        deed = await prepared(bucket, kind)
        other = await bucket.other()
        bucket.faulty.next("write", Fault.LATE, key=QUEUE_KEY)
        again = bucket.hold("write", skip=1)
        acting = asyncio.create_task(bucket.run(deed.act()))
        await again.arrived()
        if late_first:
            await bucket.faulty.deliver_late()
        await other.queue("foreign").push("theirs")
        await bucket.faulty.deliver_late()
        again.release()
        await finish(bucket, deed, await acting)
        assert (await other.queue("foreign").stats()).ready == 1

    @pytest.mark.parametrize("meanwhile", [True, False])
    async def test_applied_after_the_client_gave_up(self, bucket: Bucket, kind: str, meanwhile: bool):
        deed = await prepared(bucket, kind, conflict_timeout=1)
        bucket.faulty.next("write", Fault.LATE, key=QUEUE_KEY)
        bucket.faulty.next("write", Fault.REQUEST_LOST, key=QUEUE_KEY, times=100)
        with pytest.raises(OutcomeUnknown):
            await bucket.run(deed.act())
        bucket.faulty.heal()
        if meanwhile:
            await bucket.run(deed.client.queue("meanwhile").push("first come"))
        assert await bucket.faulty.deliver_late() == 1
        assert await deed.was_done() is not meanwhile
        await bucket.run(deed.client.queue("after").push("goes on"))
        assert await deed.was_done() is not meanwhile
        await bucket.state()
