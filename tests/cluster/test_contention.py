"""Many on one directory at once: nothing fails, nothing is lost, nothing is done twice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import bucketq
from tests.cluster.actor import QUEUE
from tests.cluster.cluster import assert_each_ended_once, drain, ids
from tests.cluster.conftest import Start

PROCESSES = 8


async def test_a_storm_of_processes_loses_nothing_and_completes_nothing_twice(start: Start, url, tmp_path):
    actors = await asyncio.gather(*(start("storm") for _ in range(PROCESSES)))
    for actor in actors:
        await actor.hear("ready")
    for actor in actors:
        actor.go_on()
    said = [message for messages in await asyncio.gather(*(actor.end() for actor in actors)) for message in messages]
    assert [message["errors"] for message in said if message.get("errors")] == []
    assert sum(message["what"] == "over" for message in said) == PROCESSES
    pushed = ids(said, "pushed")
    assert len(set(pushed)) == len(pushed)
    completed = ids(said, "completed") + await drain(url)
    assert sorted(completed) == sorted(pushed)
    assert_each_ended_once(tmp_path, pushed)


def test_threads_share_a_blocking_client(url, tmp_path):
    with bucketq.connect_sync(url) as client:
        together = threading.Barrier(PROCESSES)
        queue = client.queue(QUEUE)

        def work(thread: int) -> tuple[list[str], list[str]]:
            together.wait()
            pushed = [queue.push([thread, number]).id for number in range(10)]
            completed = []
            for _ in pushed:  # together they claim as many as they push; each round finds one
                (claim,) = queue.claim(wait=60)
                with claim:
                    completed.append(claim.job.id)
            return pushed, completed

        pushed, completed = in_threads(work)
    assert sorted(pushed) == sorted(completed)
    assert_each_ended_once(tmp_path, pushed)


def test_each_thread_may_have_a_client_of_its_own(url, tmp_path):
    def work(thread: int) -> tuple[list[str], list[str]]:
        with bucketq.connect_sync(url) as client:
            queue = client.queue(QUEUE)
            pushed = [job.id for job in queue.push_many([thread, -thread])]
            claims = queue.claim(n=2, wait=60)
            assert queue.complete_many(claims) == [None] * len(claims)
            return pushed, [claim.job.id for claim in claims]

    pushed, completed = in_threads(work)
    completed += asyncio.run(drain(url))
    assert sorted(pushed) == sorted(completed)
    assert_each_ended_once(tmp_path, pushed)


def in_threads(work: Callable[[int], tuple[list[str], list[str]]]) -> tuple[list[str], list[str]]:
    with ThreadPoolExecutor(PROCESSES) as threads:
        results = list(threads.map(work, range(PROCESSES)))
    return [each for pushed, _ in results for each in pushed], [each for _, done in results for each in done]
