"""One call of each kind, and how to see that it was done exactly once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from bucketq import Claim, Client, Complete, Job, PushTo
from tests.commit.support import Bucket

Act = Callable[[], Awaitable[Any]]


class Deed:
    """A call about to be made by `client`."""

    def __init__(self, client: Client, bucket: Bucket) -> None:
        self.client = client
        self.bucket = bucket
        self.queue = client.queue("q")

    async def prepare(self) -> None:
        """What has to be there before."""

    async def act(self) -> Any:
        raise NotImplementedError

    async def check(self, answer: Any) -> None:
        """The caller got its answer, and it was done once."""
        raise NotImplementedError

    async def was_done(self) -> bool:
        """Whether it was done at all; for callers who do not know."""
        raise NotImplementedError


class PushDeed(Deed):
    async def act(self) -> Job[Any]:
        return await self.queue.push("new")

    async def check(self, answer: Job[Any]) -> None:
        assert [(job.id, job.payload) for job in await self.bucket.run(self.queue.jobs())] == [(answer.id, "new")]

    async def was_done(self) -> bool:
        jobs = await self.bucket.run(self.queue.jobs())
        assert len(jobs) <= 1
        return bool(jobs)


class ClaimDeed(Deed):
    async def prepare(self) -> None:
        await self.queue.push_many([1, 2, 3])

    async def act(self) -> list[Claim[Any]]:
        return await self.queue.claim()

    async def check(self, answer: list[Claim[Any]]) -> None:
        (claim,) = answer
        running = await self.bucket.run(self.queue.jobs(status="running"))
        assert [(job.id, job.token, job.attempt) for job in running] == [(claim.job.id, claim.token, 1)]
        assert (await self.bucket.run(self.queue.stats())).ready == 2
        await self.bucket.run(claim.complete())

    async def was_done(self) -> bool:
        stats = await self.bucket.run(self.queue.stats())
        assert stats.running <= 1
        assert stats.ready + stats.running == 3
        return stats.running == 1


class OfClaim(Deed):
    async def prepare(self) -> None:
        await self.queue.push("work")
        (self.claim,) = await self.queue.claim()


class CompleteDeed(OfClaim):
    async def act(self) -> None:
        await self.claim.complete("result")

    async def check(self, answer: None) -> None:
        assert (await self.bucket.run(self.queue.get(self.claim.job.id))).result == "result"
        assert (await self.bucket.run(self.queue.stats())).done == 1
        await self.bucket.run(self.client.upkeep())
        assert [(record.id, record.ending) for record in await self.bucket.records()] == [(self.claim.job.id, 1)]

    async def was_done(self) -> bool:
        stats = await self.bucket.run(self.queue.stats())
        assert stats.done + stats.running == 1
        return stats.done == 1


class FailDeed(OfClaim):
    async def act(self) -> Job[Any]:
        return await self.claim.fail("no luck", retry_in=60)

    async def check(self, answer: Job[Any]) -> None:
        job = await self.bucket.run(self.queue.get(self.claim.job.id))
        assert (answer.id, answer.status, answer.attempt) == (job.id, job.status, job.attempt)
        assert (job.status, job.attempt, [attempt.outcome for attempt in job.attempts]) == ("scheduled", 1, ["failed"])

    async def was_done(self) -> bool:
        return (await self.bucket.run(self.queue.get(self.claim.job.id))).status == "scheduled"


class HeartbeatDeed(OfClaim):
    async def act(self) -> None:
        await self.claim.heartbeat("half")

    async def check(self, answer: None) -> None:
        job = await self.bucket.run(self.queue.get(self.claim.job.id))
        assert (job.status, job.progress, job.token) == ("running", "half", self.claim.token)
        await self.bucket.run(self.claim.complete())

    async def was_done(self) -> bool:
        return bool((await self.bucket.run(self.queue.get(self.claim.job.id))).progress == "half")


class TransactDeed(OfClaim):
    async def act(self) -> Any:
        return await self.client.transact([Complete(self.claim), PushTo("next", "follows")])

    async def check(self, answer: Any) -> None:
        assert (await self.bucket.run(self.queue.stats())).done == 1
        assert [job.id for job in await self.bucket.run(self.client.queue("next").jobs())] == [answer[1].id]

    async def was_done(self) -> bool:
        done, followers = (
            (await self.bucket.run(self.queue.stats())).done,
            await self.bucket.run(self.client.queue("next").jobs()),
        )
        assert done == len(followers) <= 1
        return done == 1


DEEDS: dict[str, type[Deed]] = {
    "push": PushDeed,
    "claim": ClaimDeed,
    "complete": CompleteDeed,
    "fail": FailDeed,
    "heartbeat": HeartbeatDeed,
    "transact": TransactDeed,
}
