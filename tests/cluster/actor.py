"""Another process on a queue: `actor.py ROLE URL`. Tells what it did by lines, and goes on by lines of input."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import bucketq
from bucketq.commit import Committer

QUEUE = "work"
STORM_ROUNDS = 8
"""Of a push, a claim and a completion each, in two loops."""
LEASE_S = 0.5


def tell(what: str, **more: object) -> None:
    sys.stdout.write(json.dumps({"what": what, **more}) + "\n")
    sys.stdout.flush()


async def told() -> str:
    return await asyncio.to_thread(sys.stdin.readline)


async def storm(url: str) -> None:
    """Push, claim and complete, at the same time as all the others."""
    async with bucketq.connect(url) as client:
        queue = client.queue(QUEUE)
        tell("ready")
        await told()
        await asyncio.gather(*(_storm_loop(queue) for _ in range(2)))
        tell("over")


async def _storm_loop(queue: bucketq.Queue[Any]) -> None:
    for number in range(STORM_ROUNDS):
        jobs = await queue.push_many([number, -number]) if number % 2 else [await queue.push(number)]
        tell("pushed", ids=[job.id for job in jobs])
        claims = await queue.claim(n=2)
        errors = await queue.complete_many(claims)
        tell("completed", ids=[claim.job.id for claim in claims], errors=[str(error) for error in errors if error])


async def wait(url: str) -> None:
    """Wait for jobs, one after the other. "waiting" is said when the claim has found nothing and does wait."""
    async with bucketq.connect(url) as client:
        port = client._session.port
        assert isinstance(port, Committer)
        while True:
            claiming = asyncio.ensure_future(client.queue(QUEUE).claim(wait=300))
            while not port.has_waiting and not claiming.done():  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0)
            tell("waiting")
            (claim,) = await claiming
            await claim.complete()
            tell("completed", payload=claim.payload)


async def hold(url: str) -> None:
    """Claim three jobs, and complete them when told to."""
    async with bucketq.connect(url) as client:
        queue = client.queue(QUEUE)
        claims = await queue.claim(n=3, lease=LEASE_S)
        tell("claimed", ids=[claim.job.id for claim in claims])
        await told()
        for claim in claims:
            try:
                await claim.complete("late")
                tell("completed")
            except bucketq.LeaseLost:
                tell("lost")


async def write(url: str) -> None:
    """Push, claim, complete and archive for ever; each "pushed" and "completed" was promised to be durable."""
    async with bucketq.connect(url) as client:
        await asyncio.gather(_archive_loop(client), *(_write_loop(client.queue(QUEUE)) for _ in range(4)))


async def _write_loop(queue: bucketq.Queue[Any]) -> None:
    while True:
        jobs = await queue.push_many(["x" * 1_000] * random.randint(1, 3))
        tell("pushed", ids=[job.id for job in jobs])
        claims = await queue.claim(n=2, lease=LEASE_S)
        errors = await queue.complete_many(claims)
        done = [claim.job.id for claim, error in zip(claims, errors, strict=True) if error is None]
        tell("completed", ids=done)


async def _archive_loop(client: bucketq.Client) -> None:
    while True:
        await client.upkeep()
        tell("archived", ids=[])


async def leave(url: str) -> None:
    """Push and claim, and end without closing anything, while a claim waits."""
    client = await bucketq.connect(url)
    queue = client.queue(QUEUE)
    jobs = await queue.push_many([1, 2, 3])
    await queue.claim(lease=LEASE_S)
    waiting = asyncio.ensure_future(client.queue("other").claim(wait=300))
    tell("pushed", ids=[job.id for job in jobs])
    await asyncio.sleep(0)
    assert not waiting.done()


async def leave_at_once(url: str) -> None:
    """The same, without even ending the interpreter."""
    await leave(url)
    os._exit(0)


def leave_blocking(url: str) -> None:
    """The same with the blocking twin."""
    queue = bucketq.connect_sync(url).queue(QUEUE)
    jobs = queue.push_many([1, 2, 3])
    queue.claim(lease=LEASE_S)
    tell("pushed", ids=[job.id for job in jobs])


ROLES: dict[str, Callable[[str], Awaitable[None]]] = {
    "storm": storm, "wait": wait, "hold": hold, "write": write, "leave": leave, "leave at once": leave_at_once
}  # fmt: skip


async def main(role: str, url: str) -> None:
    await ROLES[role](url)


if __name__ == "__main__":
    if sys.argv[1] == "leave blocking":
        leave_blocking(sys.argv[2])
    else:
        asyncio.run(main(sys.argv[1], sys.argv[2]))
