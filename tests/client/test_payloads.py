from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from bucketq.client.codecs import PlainCodec
from bucketq.client.payload import DEPTH_MAX, encoded
from bucketq.errors import PayloadInvalid, PayloadTooLarge

codec = PlainCodec(100_000)

atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**400), 10**400)
    | st.floats()
    | st.text(st.characters())
    | st.text(st.characters(categories=["Cs", "L"]))
    | st.binary(max_size=8)
)
values = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.booleans(), inner) | st.tuples(inner, inner)
    ),
    max_leaves=20,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


def same(a: Any, b: Any) -> bool:
    """Equal, types included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b) and (not isinstance(a, float) or math.copysign(1, a) == math.copysign(1, b))


@given(values)
def test_any_value_comes_back_exactly_or_is_refused(value):
    try:
        raw, binary = codec.encode(value)
    except PayloadInvalid:
        return
    assert same(codec.decode(raw, binary), value)


@given(json_values)
def test_every_json_value_is_accepted(value):
    raw, binary = codec.encode(value)
    assert not binary
    assert same(codec.decode(raw, binary), value)


@given(st.binary())
def test_bytes_come_back_as_bytes(data):
    raw, binary = codec.encode(data)
    assert binary
    assert codec.decode(raw, binary) == data


class Color(StrEnum):
    RED = "red"


class Text(str):
    pass


class Table(dict):
    pass


@pytest.mark.parametrize(
    ("value", "where", "why"),
    [
        (math.nan, "payload", "no JSON number"),
        ({"a": [1, math.inf]}, r"payload\['a'\]\[1\]", "no JSON number"),
        ({"a": "\ud800"}, r"payload\['a'\]", "lone surrogate"),
        ({"\udfff": 1}, "payload", "lone surrogate"),
        ([10**5_000], r"payload\[0\]", "so many digits"),
        ({1: "a"}, "payload", "not text"),
        ({"1": "a", 1: "b"}, "payload", "not text"),
        ({None: "a"}, "payload", "not text"),
        ({"at": (1, 2)}, r"payload\['at'\]", "make it a list"),
        (
            {"at": datetime(2026, 1, 1, tzinfo=UTC)},
            r"payload\['at'\]",
            "would not come back.*give the queue a type",
        ),
        ({"data": b"x"}, r"payload\['data'\]", "bytes can only be the whole payload"),
        (bytearray(b"x"), "payload", "bytes can only be the whole payload"),
        ({1, 2}, "payload", "a set would not"),
        (Decimal(1), "payload", "a Decimal would not"),
        (Color.RED, "payload", "a Color would not"),
        (Text("x"), "payload", "a Text would not"),
        (Table(), "payload", "a Table would not"),
        (Raw(b'{"a":1,"a":2}'), "payload", "a Raw would not"),
        (object(), "payload", "an object would not"),
    ],
)
def test_what_would_not_come_back_is_refused_with_the_place_and_the_reason(value, where, why):
    with pytest.raises(PayloadInvalid, match=f"^{where}: .*{why}"):
        codec.encode(value)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_nesting_is_kept_up_to_the_limit_and_refused_beyond():
    raw, binary = codec.encode(nested(DEPTH_MAX))
    assert codec.decode(raw, binary) == nested(DEPTH_MAX)
    with pytest.raises(PayloadInvalid, match="nested more than"):
        codec.encode(nested(DEPTH_MAX + 1))
    with pytest.raises(PayloadInvalid, match="nested more than"):
        codec.encode(nested(100_000))


def test_a_value_that_contains_itself_is_refused():
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(PayloadInvalid, match="nested more than"):
        codec.encode(loop)


def test_a_value_that_repeats_itself_exponentially_is_refused_in_time():
    value: Any = []
    for _ in range(90):
        value = [value, value]
    with pytest.raises(PayloadTooLarge):
        codec.encode(value)


def test_too_large_says_both_sizes():
    small = PlainCodec(10)
    small.encode("12345678")
    with pytest.raises(PayloadTooLarge, match="has 11 bytes; payload_bytes_max is 10"):
        small.encode("123456789")
    small.encode(b"1234567890")
    with pytest.raises(PayloadTooLarge, match="has 11 bytes; payload_bytes_max is 10"):
        small.encode(b"12345678901")


def test_results_may_not_be_bytes():
    with pytest.raises(PayloadInvalid, match=r"^result: bytes"):
        encoded("result", b"x", 100)
