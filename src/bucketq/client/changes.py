"""A queue's settings: as callers name them, and as the queue's row keeps them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from msgspec import Struct

from bucketq.client.checks import DEDUP_WINDOW, LEASE, MAX_ATTEMPTS, ms
from bucketq.errors import SettingInvalid
from bucketq.queue.rows import Backoff as BackoffRow
from bucketq.queue.rows import QueueRow
from bucketq.settings import Duration, Flag, Nullable, Seconds, Whole, shown, unknown

_LIMIT = Nullable(Whole(1, 10**9))
_KEEP = Seconds(0.0)
_INITIAL = Seconds(0.0)
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*([smh])")
_PER_HOUR = {"s": 3_600, "m": 60, "h": 1}
_RATE_PER_HOUR_MAX = 10**12
_FACTOR_MAX = 1_000.0


class Backoff(Struct, frozen=True):
    """Exponential back-off with full jitter, in seconds: a failed job waits a random share of
    `initial × factor^(failures-1)`, at most `max`."""

    initial: float = 1.0
    factor: float = 2.0
    max: float = 3_600.0


class QueueOptions(TypedDict, total=False):
    """What `configure` takes. Durations are seconds or timedeltas."""

    lease: Duration
    max_attempts: int
    backoff: Duration | Backoff | dict[str, float]
    max_running: int | None
    max_running_per_key: int | None
    max_waiting: int | None
    rate: float | str | None
    ordered: bool
    dedup_window: Duration
    retention: Duration | None
    result_ttl: Duration
    keep_finished: Duration


class QueueSettings(Struct, frozen=True):
    """A queue's settings as they are. Durations are seconds, `rate` is claims per second; None means no limit."""

    queue: str
    paused: bool
    lease: float
    max_attempts: int
    backoff: Backoff
    max_running: int | None
    max_running_per_key: int | None
    max_waiting: int | None
    rate: float | None
    ordered: bool
    dedup_window: float
    retention: float | None
    result_ttl: float
    keep_finished: float


def queue_changes(**given: object) -> dict[str, object]:
    """From what `configure` was given to the fields of `QueueRow`. Raises `SettingInvalid` for an unknown name and
    for a value that can't be, with the rule."""
    changes: dict[str, object] = {}
    for name, value in given.items():
        if name not in _FIELDS:
            raise unknown("setting of a queue", name, _FIELDS)
        field, convert = _FIELDS[name]
        changes[field] = convert(name, value)
    return changes


def queue_settings(row: QueueRow) -> QueueSettings:
    """The way back."""
    backoff = row.backoff
    return QueueSettings(
        queue=row.name,
        paused=row.paused,
        lease=row.lease_ms / 1_000,
        max_attempts=row.max_attempts,
        backoff=Backoff(backoff.initial_ms / 1_000, backoff.factor, backoff.max_ms / 1_000),
        max_running=row.max_running,
        max_running_per_key=row.max_running_per_key,
        max_waiting=row.max_waiting,
        rate=None if row.rate_per_hour is None else row.rate_per_hour / 3_600,
        ordered=row.ordered,
        dedup_window=row.dedup_window_ms / 1_000,
        retention=None if row.retention_ms is None else row.retention_ms / 1_000,
        result_ttl=row.result_ttl_ms / 1_000,
        keep_finished=row.keep_finished_ms / 1_000,
    )


def _milliseconds(rule: Seconds) -> Callable[[str, object], int]:
    return lambda name, value: ms(rule.check(name, value))


def _milliseconds_or_none(name: str, value: object) -> int | None:
    return None if value is None else ms(_KEEP.check(name, value))


def _rate_per_hour(name: str, value: object) -> int | None:
    if value is None:
        return None
    per_hour = _per_hour(value)
    if per_hour is None or not 1 <= round(per_hour) <= _RATE_PER_HOUR_MAX:
        raise SettingInvalid(
            f"{name} must be claims per second (a number), or text such as '100/s', '100/m' or '100/h', at least one "
            f"an hour, or None for no limit; got {shown(value)}"
        )
    return round(per_hour)


def _per_hour(value: object) -> float | None:
    if isinstance(value, str):
        found = _RATE.fullmatch(value.strip())
        number = float(found[1]) * _PER_HOUR[found[2]] if found else None
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return None
    else:
        number = min(value, _RATE_PER_HOUR_MAX) * 3_600.0
    return number if number is not None and math.isfinite(number) else None


def _backoff(name: str, value: object) -> BackoffRow:
    if isinstance(value, Mapping):
        value = _backoff_of(name, value)
    if not isinstance(value, Backoff):
        initial_s = _INITIAL.check(name, value)
        value = Backoff(initial_s, max=max(initial_s, Backoff().max))
    initial_s = _INITIAL.check(f"{name}.initial", value.initial)
    max_s = Seconds(initial_s).check(f"{name}.max", value.max)
    return BackoffRow(ms(initial_s), _factor(f"{name}.factor", value.factor), ms(max_s))


def _backoff_of(name: str, given: Mapping[Any, Any]) -> Backoff:
    for key in given:
        if key not in Backoff.__struct_fields__:
            raise unknown(f"part of {name}", str(key), Backoff.__struct_fields__)
    return Backoff(**given)


def _factor(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1.0 <= value <= _FACTOR_MAX:
        raise SettingInvalid(f"{name} must be a number from 1 to {_FACTOR_MAX:g}; got {shown(value)}")
    return float(value)


_Convert = Callable[[str, object], object]


_FIELDS: dict[str, tuple[str, _Convert]] = {
    "lease": ("lease_ms", _milliseconds(LEASE)),
    "max_attempts": ("max_attempts", MAX_ATTEMPTS.check),
    "backoff": ("backoff", _backoff),
    "max_running": ("max_running", _LIMIT.check),
    "max_running_per_key": ("max_running_per_key", _LIMIT.check),
    "max_waiting": ("max_waiting", _LIMIT.check),
    "rate": ("rate_per_hour", _rate_per_hour),
    "ordered": ("ordered", Flag().check),
    "dedup_window": ("dedup_window_ms", _milliseconds(DEDUP_WINDOW)),
    "retention": ("retention_ms", _milliseconds_or_none),
    "result_ttl": ("result_ttl_ms", _milliseconds(_KEEP)),
    "keep_finished": ("keep_finished_ms", _milliseconds(_KEEP)),
}
