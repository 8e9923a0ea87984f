"""The lines of the archive, as whoever reads them without bucketq finds them."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from bucketq.errors import StateCorrupt
from bucketq.journal.archive import compress, read_records
from tests.commit.support import Bucket

FIELDS: dict[str, type] = {
    "format": int,
    "id": str,
    "queue": str,
    "group": str,
    "key": str,
    "priority": int,
    "ending": int,
    "status": str,
    "payload": str,
    "payload_base64": str,
    "result": str,
    "error": str,
    "attempts": list,
    "pushed_at": str,
    "ready_at": str,
    "claimed_at": str,
    "finished_at": str,
    "worker": str,
    "headers": dict,
}
ALWAYS = {"format", "id", "queue", "priority", "ending", "status", "attempts", "pushed_at", "ready_at", "finished_at"}
ATTEMPT: dict[str, type] = {"worker": str, "claimed_at": str, "ended_at": str, "outcome": str, "error": str}
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


async def lines_of(bucket: Bucket) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    async for key in bucket.inner.list("archive/"):
        found = await bucket.inner.get(key)
        assert found is not None
        text = zstandard.ZstdDecompressor().decompress(found.data).decode()
        assert text.endswith("\n")
        lines += [json.loads(line) for line in text.splitlines()]
    return lines


@pytest.fixture
async def lines() -> AsyncIterator[dict[str, dict[str, Any]]]:
    """One job for each way to end, by its payload."""
    bucket = Bucket()
    clock = bucket.clock
    client = await bucket.connect(worker="w1")
    queue = client.queue("q")
    await clock.advance(0.123456)
    await queue.configure(max_attempts=2, keep_finished=0)
    await queue.push({"kind": "done", "ü": [1.5, None]}, key="tenant", priority=-7, headers={"trace": "abc"})
    await clock.advance(1)
    (claim,) = await queue.claim()
    await clock.advance(2)
    await claim.complete({"answer": 42})
    await queue.push(b"\x00\x01\xff", delay=5)
    await clock.advance(5)
    (claim,) = await queue.claim(worker="w2")
    await claim.complete()
    await queue.push("dead")
    for number in range(2):
        (claim,) = await queue.claim(lease=10)
        if number:
            await clock.advance(11)
        else:
            await claim.fail(ValueError("no luck"), retry_in=0)
    cancelled = await queue.push("cancelled")
    await queue.cancel(cancelled.id)
    await queue.push(None, ttl=3)
    await clock.advance(4)
    grouped = client.queue("grouped")
    await grouped.subscribe("billing")
    await grouped.push("grouped")
    (claim,) = await grouped.claim(group="billing")
    await claim.release()
    (claim,) = await grouped.claim(group="billing")
    await claim.complete()
    await bucket.run(client.upkeep())
    found = await lines_of(bucket)
    yield {json.dumps(line["payload"]) if line["payload"] else "bytes": line for line in found}
    await bucket.close()


def test_each_has_every_field_of_one_type(lines: dict[str, dict[str, Any]]):
    assert len(lines) == 6
    for line in lines.values():
        assert list(line) == list(FIELDS)
        for name, value in line.items():
            assert type(value) is FIELDS[name] or (value is None and name not in ALWAYS), (name, value)
        for attempt in line["attempts"]:
            assert list(attempt) == list(ATTEMPT)
            assert all(type(value) is ATTEMPT[name] or value is None for name, value in attempt.items())


def test_times_have_six_digits_and_a_zone(lines: dict[str, dict[str, Any]]):
    for line in lines.values():
        times = [line[name] for name in line if name.endswith("_at") and line[name] is not None]
        times += [attempt[name] for attempt in line["attempts"] for name in ("claimed_at", "ended_at")]
        assert all(ISO.fullmatch(time) for time in times)
        assert (
            line["pushed_at"] <= line["ready_at"] <= (line["claimed_at"] or line["finished_at"]) <= line["finished_at"]
        )


def test_no_object_is_empty(lines: dict[str, dict[str, Any]]):
    assert not any(value == {} for line in lines.values() for value in line.values())


def by_status(lines: dict[str, dict[str, Any]], status: str) -> dict[str, Any]:
    (found,) = [line for line in lines.values() if line["status"] == status and not line["group"]]
    return found


def test_one_that_is_done(lines: dict[str, dict[str, Any]]):
    (line,) = [line for line in lines.values() if line["key"]]
    assert line == {
        "format": 1,
        "id": line["id"],
        "queue": "q",
        "group": None,
        "key": "tenant",
        "priority": -7,
        "ending": 1,
        "status": "done",
        "payload": '{"kind":"done","ü":[1.5,null]}',
        "payload_base64": None,
        "result": '{"answer":42}',
        "error": None,
        "attempts": [
            {
                "worker": "w1",
                "claimed_at": "2026-01-01T00:00:01.123456Z",
                "ended_at": "2026-01-01T00:00:03.123456Z",
                "outcome": "done",
                "error": None,
            }
        ],
        "pushed_at": "2026-01-01T00:00:00.123456Z",
        "ready_at": "2026-01-01T00:00:00.123456Z",
        "claimed_at": "2026-01-01T00:00:01.123456Z",
        "finished_at": "2026-01-01T00:00:03.123456Z",
        "worker": "w1",
        "headers": {"trace": "abc"},
    }


def test_bytes_are_in_base64(lines: dict[str, dict[str, Any]]):
    line = lines["bytes"]
    assert (line["payload"], line["payload_base64"], line["worker"]) == (None, "AAH/", "w2")
    assert (line["pushed_at"][17:], line["ready_at"][17:]) == ("03.123456Z", "08.123456Z")


def test_one_that_died(lines: dict[str, dict[str, Any]]):
    line = by_status(lines, "dead")
    outcomes = [(attempt["outcome"], attempt["error"]) for attempt in line["attempts"]]
    assert outcomes == [("failed", "ValueError: no luck"), ("lost", "the lease of 10 s ran out")]
    assert line["error"] == "the lease of 10 s ran out"


def test_one_that_was_cancelled(lines: dict[str, dict[str, Any]]):
    line = by_status(lines, "cancelled")
    assert (line["attempts"], line["claimed_at"], line["worker"], line["error"]) == ([], None, None, None)


def test_one_that_expired(lines: dict[str, dict[str, Any]]):
    line = by_status(lines, "expired")
    assert (line["payload"], line["claimed_at"], line["result"]) == ("null", None, None)


def test_one_of_a_group(lines: dict[str, dict[str, Any]]):
    line = lines[json.dumps('"grouped"')]
    assert (line["queue"], line["group"]) == ("grouped", "billing")
    assert [attempt["outcome"] for attempt in line["attempts"]] == ["released", "done"]


SEGMENT = compress(
    b'{"format":1,"id":"tag-1","queue":"q","group":null,"key":null,"priority":0,"ending":1,"status":"done",'
    b'"payload":"1","payload_base64":null,"result":null,"error":null,"attempts":[],"pushed_at":"","ready_at":"",'
    b'"claimed_at":null,"finished_at":"","worker":null,"headers":null}\n'
)


@given(at=st.integers(0, len(SEGMENT) - 1), bit=st.integers(0, 7), cut=st.booleans())
def test_a_damaged_segment_is_named(at: int, bit: int, cut: bool):
    whole = list(read_records("archive/x", SEGMENT))
    damaged = SEGMENT[:at] if cut else SEGMENT[:at] + bytes([SEGMENT[at] ^ (1 << bit)]) + SEGMENT[at + 1 :]
    try:
        found = list(read_records("archive/x", damaged))
    except StateCorrupt as error:
        key = error.key
    else:
        key = "archive/x"
        assert found == whole  # a bit that means nothing was hit
    assert key == "archive/x"


@pytest.mark.parametrize("line", [b"not json\n", b"{}\n", b"\xff\n", b'{"format":1}\n'])
def test_a_line_that_is_no_record_is_named(line: bytes):
    with pytest.raises(StateCorrupt, match="archive/x"):
        list(read_records("archive/x", compress(line)))
