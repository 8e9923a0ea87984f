"""From values to JSON text and back, exactly: what would not come back as it went in is refused."""

from __future__ import annotations

from math import isfinite
from types import NoneType
from typing import Any

import msgspec
from msgspec import Raw

from bucketq.errors import PayloadInvalid, PayloadTooLarge
from bucketq.settings import shown

DEPTH_MAX = 100
"""Of nesting. Whoever reads the state must be able to read every payload in it, however deep its own stack is."""

_ATOMS = frozenset({str, int, bool, NoneType})
_BOXES = frozenset({dict, list})
_HINT = "convert it first, or give the queue a type: client.queue(name, type)"

encode_json = msgspec.json.Encoder().encode
decode_json = msgspec.json.Decoder().decode


def encoded(what: str, value: object, bytes_max: int) -> Raw:
    """The JSON text of a plain JSON value.

    Raises `PayloadInvalid`, with the place and the reason, if it would not survive the round trip exactly (types
    included), and `PayloadTooLarge`.
    """
    if not _is_exact(value, bytes_max):
        raise _refusal(what, value, bytes_max)
    try:
        text = encode_json(value)
    except (ValueError, OverflowError, RecursionError):
        raise _refusal(what, value, bytes_max) from None
    if len(text) > bytes_max:
        raise too_large(what, len(text), bytes_max)
    return Raw(text)


def too_large(what: str, size: int, bytes_max: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"the {what} has {size:,} bytes; payload_bytes_max is {bytes_max:,}. "
        "Keep large things in the bucket and push their key"
    )


def check_depth(what: str, text: bytes) -> None:
    """Refuse JSON text that is nested too deeply."""
    if text.count(b"[") + text.count(b"{") <= DEPTH_MAX:
        return
    try:
        level = [decode_json(text)]
    except RecursionError:
        raise _too_deep(what) from None
    for _ in range(DEPTH_MAX + 1):
        level = [box for box in level if type(box) in _BOXES]
        if not level:
            return
        level = [each for box in level for each in (box.values() if type(box) is dict else box)]
    raise _too_deep(what)


def _too_deep(what: str) -> PayloadInvalid:
    return PayloadInvalid(f"the {what} is nested more than {DEPTH_MAX} levels deep")


def _is_exact(value: object, boxes_max: int) -> bool:
    """Whether the value is made of nothing but what JSON keeps. Level by level: a value that contains itself is
    too deep, and one that repeats its parts many times over has too many boxes (of two bytes or more each)."""
    kind = type(value)
    if kind not in _BOXES:
        return kind in _ATOMS or (kind is float and isfinite(value))  # type: ignore[arg-type]
    level: list[Any] = [value]
    for _ in range(DEPTH_MAX):
        inner: list[Any] = []
        for box in level:
            if type(box) is dict:
                for key in box:
                    if type(key) is not str:
                        return False
                box = box.values()
            for each in box:
                kind = type(each)
                if kind in _ATOMS:
                    continue
                if kind in _BOXES:
                    inner.append(each)
                elif kind is not float or not isfinite(each):
                    return False
        if not inner:
            return True
        if len(inner) > boxes_max:
            return False
        level = inner
    return False


def _refusal(what: str, value: object, boxes_max: int) -> PayloadInvalid | PayloadTooLarge:
    """The first fault, and where it is."""
    level: list[tuple[str, Any]] = [(what, value)]
    for _ in range(DEPTH_MAX + 1):
        inner: list[tuple[str, Any]] = []
        for path, each in level:
            fault = _fault(each)
            if fault:
                return PayloadInvalid(f"{path}: {fault}")
            if type(each) is dict:
                inner.extend((f"{path}[{shown(key)}]", part) for key, part in each.items())
            elif type(each) is list:
                inner.extend((f"{path}[{index}]", part) for index, part in enumerate(each))
        if not inner:
            return PayloadInvalid(f"the {what} can't be written as JSON")
        if len(inner) > boxes_max:
            return too_large(what, 2 * len(inner), boxes_max)
        level = inner
    return _too_deep(what)


def _fault(value: object) -> str | None:
    kind = type(value)
    if kind is str:
        return None if _is_unicode(value) else "text with a lone surrogate is not valid Unicode"
    if kind is int:
        return None if _is_writable(value) else "an integer of so many digits can't be written"
    if kind is float:
        return None if isfinite(value) else f"{value} is no JSON number; use None"  # type: ignore[arg-type]
    if kind is dict:
        return next((fault for key in value if (fault := _key_fault(key))), None)  # type: ignore[attr-defined]
    if kind in _ATOMS or kind is list:
        return None
    if kind is tuple:
        return "a tuple would come back as a list; make it a list"
    if isinstance(value, bytes | bytearray | memoryview):
        return "bytes can only be the whole payload, as bytes; inside a value use text, such as base64"
    return f"{_article(kind.__name__)} would not come back as it is; {_HINT}"


def _key_fault(key: object) -> str | None:
    if type(key) is not str:
        return f"the key {shown(key)} is not text and would come back as text"
    return None if _is_unicode(key) else f"the key {shown(key)} has a lone surrogate, which is not valid Unicode"


def _article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def _is_unicode(text: Any) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_writable(number: object) -> bool:
    try:
        encode_json(number)
    except (ValueError, OverflowError):
        return False
    return True
