"""Processes that die, stop or leave: what was promised is there, and what they held comes back."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import bucketq
from tests.cluster.actor import QUEUE
from tests.cluster.cluster import (
    PATIENCE_S,
    Message,
    assert_each_ended_once,
    assert_sound,
    drain,
    environment,
    ids,
    records,
)
from tests.cluster.conftest import Start

DEATHS = 10
RUNS = 20


async def claim_all(queue: bucketq.Queue[object], count: int) -> list[bucketq.Claim[object]]:
    """So many claims, waiting for leases to run out."""
    claims: list[bucketq.Claim[object]] = []
    while len(claims) < count:
        more = await queue.claim(n=count - len(claims), wait=PATIENCE_S)
        assert more, f"only {len(claims)} of {count} came back"
        claims += more
    return claims


async def test_what_a_killed_worker_held_comes_back_and_is_done_by_others(start: Start, url, tmp_path):
    async with bucketq.connect(url) as client:
        queue = client.queue(QUEUE)
        await queue.push_many([1, 2, 3])
        worker = await start("hold")
        held = (await worker.hear("claimed"))["ids"]
        await worker.kill()
        claims = await claim_all(queue, 3)
        assert sorted(claim.job.id for claim in claims) == sorted(held)
        assert {claim.job.attempt for claim in claims} == {2}
        assert await queue.complete_many(claims) == [None] * 3
    assert_each_ended_once(tmp_path, held)
    assert {tuple(attempt.outcome for attempt in record.attempts) for record in records(tmp_path)} == {("lost", "done")}


async def test_a_worker_stopped_past_its_lease_is_refused_and_the_job_is_done_once(start: Start, url, tmp_path):
    async with bucketq.connect(url) as client:
        queue = client.queue(QUEUE)
        await queue.push_many([1, 2, 3])
        worker = await start("hold")
        held = (await worker.hear("claimed"))["ids"]
        worker.signal(signal.SIGSTOP)
        claims = await claim_all(queue, 3)
        await claims[0].complete("in time")  # one is done by now, two are still being done
        worker.signal(signal.SIGCONT)
        worker.go_on()
        assert [message["what"] for message in await worker.end()] == ["lost"] * 3
        for claim in claims[1:]:
            await claim.complete("in time")
        results = [(await queue.get(job_id)).result for job_id in held]
    assert results == ["in time"] * 3
    assert_each_ended_once(tmp_path, held)


async def test_what_was_acknowledged_survives_any_number_of_kills(start: Start, url, tmp_path):
    rng = random.Random()
    said: list[Message] = []
    for _ in range(DEATHS):
        writer = await start("write")
        said += [await writer.hear("pushed", "completed", "archived") for _ in range(rng.randint(1, 40))]
        said += await writer.kill()  # somewhere in what its five loops do
        if (tmp_path / "queue.json").exists():
            assert_sound(tmp_path)

    pushed, completed = ids(said, "pushed"), ids(said, "completed")
    assert len(set(pushed)) == len(pushed)
    assert len(set(completed)) == len(completed)
    done_now = await drain(url)
    assert not set(done_now) & set(completed)

    ended = [record.id for record in records(tmp_path)]
    assert set(pushed) <= set(ended)  # jobs that were stored but not yet acknowledged may be there too
    assert set(completed) <= set(ended)
    assert_each_ended_once(tmp_path, sorted(set(ended)))
    assert list(tmp_path.rglob(".tmp-*")) == []


@pytest.mark.parametrize("role", ["leave", "leave at once", "leave blocking"])
async def test_a_process_that_ends_without_closing_leaves_all_to_the_next(start: Start, url, tmp_path, role):
    said = await (await start(role)).end()
    pushed = ids(said, "pushed")
    assert sorted(await drain(url)) == sorted(pushed)
    assert_each_ended_once(tmp_path, pushed)


PLAIN_SCRIPT = """
import sys
import bucketq

with bucketq.connect_sync(sys.argv[1]) as client:
    mail = client.queue("work")
    mail.push({"to": "ann@example.org"})
    for claim in mail.claim(wait=60):
        with claim:
            print(claim.job.id)
"""


async def test_a_plain_script_ends_well_every_time(url, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(PLAIN_SCRIPT)
    with ThreadPoolExecutor(4) as threads:
        runs = list(threads.map(lambda _: run(script, f"{url}/queue"), range(RUNS)))
    assert [(each.returncode, each.stderr) for each in runs] == [(0, "")] * RUNS
    assert_each_ended_once(tmp_path / "queue", [line for each in runs for line in each.stdout.split()])


def run(script: Path, url: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [sys.executable, script, url]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
