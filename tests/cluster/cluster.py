"""What the tests of this folder share: starting processes, and taking stock of a directory."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from pathlib import Path
from typing import Any

import bucketq
from bucketq.journal.archive import Record, read_records
from bucketq.journal.document import decode
from bucketq.queue.invariants import violations
from bucketq.queue.state import State
from tests.cluster.actor import QUEUE

ACTOR = Path(__file__).with_name("actor.py")
SOURCE = str(Path(bucketq.__file__).parents[1])
PATIENCE_S = 60.0
"""After which a test that waits in vain fails; nothing depends on its length."""

Message = dict[str, Any]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": SOURCE}


class Actor:
    """A process that plays a role of `actor.py`."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, role: str, url: str) -> Actor:
        process = await asyncio.create_subprocess_exec(
            sys.executable, ACTOR, role, url, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment()
        )
        return cls(process)

    async def hear(self, *kinds: str) -> Message:
        """The next message, which must be of one of these kinds."""
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), PATIENCE_S)
        message: Message = json.loads(line) if line else {"what": "the end", "stderr": await self._errors()}
        assert message["what"] in kinds, message
        return message

    def go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    async def end(self) -> list[Message]:
        """Wait for a clean end; all that was said until then."""
        out, err = await asyncio.wait_for(self._process.communicate(), PATIENCE_S)
        assert not self._process.returncode, (self._process.returncode, err.decode())
        assert not err, err.decode()
        return [json.loads(line) for line in out.splitlines()]

    async def kill(self) -> list[Message]:
        """kill -9; all that had been said by then, but for a line cut short."""
        if self._process.returncode is None:
            self._process.kill()
        out, _ = await asyncio.wait_for(self._process.communicate(), PATIENCE_S)
        return [json.loads(line) for line in out.splitlines(keepends=True) if line.endswith(b"\n")]

    async def _errors(self) -> str:
        assert self._process.stderr is not None
        return (await self._process.stderr.read()).decode()


def ids(messages: list[Message], what: str) -> list[str]:
    return [job_id for message in messages if message["what"] == what for job_id in message["ids"]]


async def drain(url: str) -> list[str]:
    """Complete all that is left, what comes back from lost leases too; the ids."""
    done: list[str] = []
    async with bucketq.connect(url) as client:
        queue = client.queue(QUEUE)
        while (stats := await queue.stats()).ready or stats.running:
            claims = await queue.claim(n=1_000, wait=PATIENCE_S)
            assert claims, "what was left did not come back"
            assert await queue.complete_many(claims) == [None] * len(claims)
            done += [claim.job.id for claim in claims]
        await client.upkeep()
    return done


def records(directory: Path) -> list[Record]:
    """All that the archive holds, in order; segments are numbered without gaps."""
    segments = sorted(directory.glob("archive/*/*.zst"), key=lambda path: path.name)
    assert [int(path.name.split(".")[0]) for path in segments] == list(range(1, len(segments) + 1))
    return [record for path in segments for record in read_records(path.name, path.read_bytes())]


def assert_each_ended_once(directory: Path, job_ids: list[str]) -> None:
    """Each of these jobs, and no other, is in the archive once, done; and what is stored is sound."""
    assert Counter(record.id for record in records(directory)) == Counter(job_ids)
    assert {record.status for record in records(directory)} == {"done"}
    assert_sound(directory)


def assert_sound(directory: Path) -> None:
    document = decode((directory / "queue.json").read_bytes())
    broken = violations(State.load(document.snapshot()))
    assert not broken, broken
