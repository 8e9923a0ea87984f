from __future__ import annotations

import asyncio
import math
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

from bucketq.errors import PayloadInvalid, PayloadTooLarge, SettingInvalid
from bucketq.queue import commands as c


class Struct(msgspec.Struct):
    to: str
    at: datetime
    score: float | None = None


@dataclass
class Data:
    to: str
    at: datetime
    score: float | None = None


class Model(pydantic.BaseModel):
    to: str
    at: datetime
    score: float | None = None
    other: int = pydantic.Field(default=1, alias="oTher")


class Dict(TypedDict):
    to: str
    score: float | None


NOW = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (Struct, Struct("x", NOW)),
        (Data, Data("x", NOW, 1.5)),
        (Model, Model(to="x", at=NOW, oTher=3)),
        (Dict, {"to": "x", "score": None}),
        (int, 5),
        (str, "x"),
        (bytes, b"\x00"),
        (datetime, NOW),
        (list[int], [1, 2]),
        (dict[str, float], {"a": 1.5}),
        (tuple[int, str], (1, "a")),
        (list[Data], [Data("x", NOW)]),
        (Any, {"a": [1]}),
    ],
)
async def test_a_value_of_the_type_comes_back_as_one(client, type_, value):
    mail = client.queue("mail", type_)
    job = await mail.push(value)
    assert job.payload == value
    (claim,) = await mail.claim()
    assert claim.payload == value
    assert type(claim.payload) is type(value)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (Struct, {"to": "x", "at": "2026-01-01T00:00:00Z"}),
        (Struct, Struct(5, NOW)),  # type: ignore[arg-type]
        (Struct, Struct("x", NOW, math.nan)),
        (Struct, Struct("\ud800", NOW)),
        (Struct, Data("x", NOW)),
        (Data, Data("x", "soon")),  # type: ignore[arg-type]
        (Data, Data("x", NOW, math.inf)),
        (Data, {"to": "x", "at": NOW}),
        (Model, {"to": "x", "at": NOW}),
        (Model, Model.model_construct(to=5, at=NOW, score=None, other=1)),
        (Model, Model(to="x", at=NOW, score=math.nan)),
        (Dict, {"to": 5, "score": None}),
        (Dict, {"to": "x"}),
        (Dict, {"to": "x", "score": None, "more": 1}),
        (int, "5"),
        (int, True),
        (int, None),
        (bytes, "x"),
        (bytes, bytearray(b"x")),
        (list[int], (1, 2)),
        (list[int], [1, "2"]),
        (str, object()),
        (str, b"x"),
    ],
)
async def test_another_value_is_refused(client, tap, type_, value):
    with pytest.raises(PayloadInvalid):
        await client.queue("mail", type_).push(value)
    assert tap.seen == []


class Plain:
    pass


@pytest.mark.parametrize("type_", [Plain, 5, "Struct", dict[int, Plain] | int | str | list[int] | tuple[int]])
async def test_a_type_that_payloads_cannot_have_is_refused(client, type_):
    with pytest.raises(SettingInvalid, match="payloads can't be of type"):
        client.queue("mail", type_)


async def test_a_typed_payload_has_the_same_limits(connect):
    mail = (await connect(payload_bytes_max=100)).queue("mail", Struct)
    with pytest.raises(PayloadTooLarge):
        await mail.push(Struct("x" * 100, NOW))
    with pytest.raises(PayloadInvalid, match="nested more than"):
        await (await connect()).queue("mail", Recursive).push(recursive(150))
    mail = (await connect()).queue("mail", Recursive)
    assert (await mail.push(recursive(99))).payload == recursive(99)


class Recursive(msgspec.Struct):
    next: Recursive | None = None


def recursive(depth: int) -> Recursive:
    value = Recursive()
    for _ in range(depth):
        value = Recursive(value)
    return value


class Identity(msgspec.Struct, eq=False):
    a: float | None


async def test_a_type_that_does_not_compare_is_compared_by_its_fields(client):
    mail = client.queue("mail", Identity)
    assert (await mail.push(Identity(1.5))).payload.a == 1.5
    with pytest.raises(PayloadInvalid):
        await mail.push(Identity(math.nan))


async def test_a_claimed_payload_of_another_type_fails_its_job_and_is_left_out(client):
    raw, mail = client.queue("mail"), client.queue("mail", Struct)
    bad = await raw.push({"to": 5}, max_attempts=2)
    good = await mail.push(Struct("x", NOW))
    (claim,) = await mail.claim(n=10)
    assert claim.job.id == good.id
    failed = await raw.get(bad.id)
    assert failed.attempt == 1
    assert failed.error.startswith("PayloadInvalid: the payload is no valid Struct: ")
    assert failed.status == "scheduled"


async def test_an_invalid_payload_ends_dead_and_never_done(client, clock):
    bad = await client.queue("mail").push(b"bytes", max_attempts=2)
    mail = client.queue("mail", Struct)
    for _ in range(10):
        assert await mail.claim() == []
        await clock.advance(3_600)
    assert (await mail.get(bad.id)).status == "dead"
    assert (await mail.stats()).done == 0
    with pytest.raises(PayloadInvalid, match="it is bytes"):
        _ = (await mail.get(bad.id)).payload


async def test_a_waiting_claim_goes_on_waiting_past_invalid_payloads(client, clock):
    mail = client.queue("mail", Struct)
    waiting = asyncio.create_task(mail.claim(n=10, wait=60))
    await clock.settle()
    bad = await client.queue("mail").push("bad", max_attempts=1)
    await clock.settle()
    assert not waiting.done()
    assert (await mail.get(bad.id)).status == "dead"
    await clock.advance(30)
    await mail.push(Struct("x", NOW))
    assert len(await clock.run(waiting)) == 1


async def test_a_claim_that_finds_only_invalid_payloads_ends_when_its_wait_does(client, clock):
    await client.queue("mail").push("bad", max_attempts=1)
    began_us = clock.mono_us()
    assert await clock.run(client.queue("mail", Struct).claim(wait=5)) == []
    assert clock.mono_us() - began_us == 5_000_000


async def test_auto_complete_on_a_typed_queue_never_completes_an_invalid_payload(client):
    raw, mail = client.queue("mail"), client.queue("mail", Struct)
    bad = await raw.push("bad", max_attempts=1)
    await mail.push(Struct("x", NOW))
    (claim,) = await mail.claim(n=2, auto_complete=True)
    assert claim.payload.to == "x"
    assert (await mail.stats()).done == 1
    assert (await raw.get(bad.id)).status == "dead"


async def test_a_caller_cancelled_while_invalid_payloads_are_failed_gives_the_rest_back(client, clock, tap):
    mail = client.queue("mail", Struct)
    await client.queue("mail").push("bad")
    await mail.push(Struct("x", NOW))
    tap.gates[c.Fail] = asyncio.Event()
    caller = asyncio.create_task(mail.claim(n=2))
    await tap.reached.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert (await mail.stats()).running == 0


def test_pydantic_is_not_imported_for_those_who_do_not_use_it():
    code = "import sys, bucketq; sys.exit('pydantic' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
