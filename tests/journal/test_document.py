"""`queue.json` as bytes: readable by people, and damage never goes unnoticed."""

from __future__ import annotations

import json
import random
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from bucketq.errors import StateCorrupt
from bucketq.journal.document import Document, Head, InlineEncoder, decode
from bucketq.queue import commands as c
from bucketq.queue.machine import Machine
from bucketq.queue.rows import ScheduleRow
from bucketq.queue.state import State
from tests.commit.support import sealed


@cache
def machine() -> Machine:
    """A queue with something of everything."""
    machine = Machine(State.new("tag"))
    machine.begin(1_767_225_600_000_000, 0, random.Random(1).random)
    items = tuple(
        c.PushItem(Raw(b'{"n":%d}' % n), key=f"k{n % 2}", dedup=f"d{n}", headers={"h": "ü"}, ttl_us=10**9, delay_us=n)
        for n in range(6)
    )
    machine.decide(c.Push("q", items))
    machine.decide(c.Push("q", (c.PushItem(Raw(b'"AAEC"'), binary=True, max_attempts=3),)))
    machine.decide(c.Configure("q", {"ordered": True, "max_running": 5}))
    machine.decide(c.Subscribe("p", "billing"))
    machine.decide(c.Push("p", (c.PushItem(Raw(b"null")),)))
    machine.decide(c.PutSchedule(ScheduleRow("tick", "q", Raw(b"1"), 0, cron="* * * * *")))
    machine.settle()
    machine.begin(1_767_225_601_000_000, 0, random.Random(2).random)
    one, two = machine.decide(c.Claim(("q",), 2, worker="me"))
    machine.decide(c.Complete(c.Handle("q", one.id, one.run.token)))
    machine.decide(c.Fail(c.Handle("q", two.id, two.run.token), "no luck"))
    machine.decide(c.Claim(("q",), 1))
    machine.decide(c.Seal("2026-01-01T00"))
    machine.state.put_stamp(1, machine.now_us, 0, "writer", "nonce")
    machine.settle()
    return machine


def encoded(nonce: str = "nonce") -> bytes:
    encoder = InlineEncoder()
    encoder.remember(machine().state)
    return encoder.encode(machine().state, Head("inline", "writer", nonce))


@cache
def valid() -> bytes:
    return encoded()


@cache
def document() -> Document:
    return decode(valid())


def positions() -> st.SearchStrategy[int]:
    """Anywhere; the first line more often than its share."""
    return st.one_of(st.integers(0, 65), st.integers(0, len(valid()) - 1))


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    data = valid()
    for _ in range(draw(st.integers(1, 3))):
        at, to = sorted((draw(positions()), draw(positions())))
        piece = draw(st.one_of(st.binary(max_size=8), st.sampled_from([b"\n", b'"', b"}", b"1", b"0", b" ", b"null"])))
        match draw(st.sampled_from(["flip", "cut", "insert", "replace", "truncate", "double", "move"])):
            case "flip" if at < len(data):
                data = data[:at] + bytes([data[at] ^ (1 << draw(st.integers(0, 7)))]) + data[at + 1 :]
            case "cut":
                data = data[:at] + data[to:]
            case "insert":
                data = data[:at] + piece + data[at:]
            case "replace":
                data = data[:at] + piece + data[at + len(piece) :]
            case "truncate":
                data = data[:at]
            case "double":
                data = data[:to] + data[at:]
            case "move":
                data = data[to:] + data[:to]
    return data


def test_a_valid_one_is_read_as_it_was_written():
    snapshot = document().snapshot()
    assert State.load(snapshot).rows() == machine().state.rows()
    assert document().head == Head("inline", "writer", "nonce")


@given(mutations())
def test_any_damage_is_found(data: bytes):
    if data == valid():
        return
    with pytest.raises(StateCorrupt, match=r"^queue\.json: "):
        decode(data)


@given(st.binary(max_size=200))
def test_anything_else_is_not_a_document(data: bytes):
    with pytest.raises(StateCorrupt):
        decode(data)


@given(mutations())
def test_a_body_that_makes_no_sense_is_found_even_if_its_checksum_is_right(data: bytes):
    body = data.split(b"\n", 1)[-1]
    try:
        found = decode(sealed(body))
    except StateCorrupt:
        return
    assert isinstance(found, Document)


@pytest.mark.parametrize("number", [2, 10, 999_999_999])
def test_a_newer_format_says_so_before_anything_else_is_looked_at(number: int):
    newer = b'{"format":%d,"checksum":"%b",\n"whatever":' % (number, b"0" * 32)
    with pytest.raises(StateCorrupt, match=f"format {number}.*upgrade"):
        decode(newer)


def test_people_can_read_it():
    text = valid().decode()
    found = json.loads(text)
    assert list(found) == ["format", "checksum", "head", "root", "dedups", "jobs"]
    lines = text[text.index('"jobs":[\n') :].splitlines()[1:-1]
    assert [json.loads(line.rstrip(","))["job"]["n"] for line in lines] == sorted(machine().state.jobs)


def test_the_bytes_of_two_commits_are_never_the_same():
    """An ETag may be a hash of the content."""
    assert encoded("one") != encoded("two")
