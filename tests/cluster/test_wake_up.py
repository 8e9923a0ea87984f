"""A claim that waits in one process is woken by what happens in another."""

from __future__ import annotations

import bucketq
from tests.cluster.actor import QUEUE
from tests.cluster.conftest import Start


async def test_a_waiting_claim_is_woken_from_another_process(start: Start, url):
    waiter = await start("wait")
    async with bucketq.connect(url) as client:
        queue = client.queue(QUEUE)
        await waiter.hear("waiting")
        await queue.push("a push")
        assert (await waiter.hear("completed"))["payload"] == "a push"

        await waiter.hear("waiting")
        await queue.push("its time has come", delay=0.2)
        assert (await waiter.hear("completed"))["payload"] == "its time has come"

        await waiter.hear("waiting")
        await queue.pause()
        await queue.push("a resume")
        await queue.resume()
        assert (await waiter.hear("completed"))["payload"] == "a resume"

        await waiter.hear("waiting")
        await client.transact([bucketq.PushTo(QUEUE, "a transaction")])
        assert (await waiter.hear("completed"))["payload"] == "a transaction"
