"""What names, numbers and times may be. Applied before a command exists; each error says its rule."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import cast, get_args

from bucketq.errors import SettingInvalid
from bucketq.queue.commands import JobStatus
from bucketq.queue.rows import NAMELESS
from bucketq.settings import DAY_S, Choice, Nullable, Seconds, Text, Whole, is_clean, shown

ERROR_CHARS_MAX = 4_096
HEADERS_MAX = 32
HEADER_CHARS_MAX = 1_024
JOB_ID_CHARS_MAX = 128
QUEUES_MAX = 1_000
ITEMS_MAX = 100_000
"""Of one push_many, complete_many or transact: it is one write."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_NAME_RULE = "1 to 100 of A-Z a-z 0-9 . _ - beginning with a letter or digit"
_HEADER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_STATUSES: tuple[str, ...] = get_args(JobStatus)

TEXT = Text()
PRIORITY = Whole(-(2**53), 2**53)
MAX_ATTEMPTS = Whole(1, 1_000)
COUNT = Whole(1, 10_000)
DELAY = Seconds(0.0)
TTL = Seconds(0.001)
DEDUP_WINDOW = Seconds(0.0)
LEASE = Seconds(0.1, 7 * DAY_S)
WAIT = Seconds(0.0, DAY_S)
STATUS = Nullable(Choice(_STATUSES))


def name(what: str, value: object) -> str:
    """The name of a queue, group or schedule."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise SettingInvalid(f"{what} must be {_NAME_RULE}; got {shown(value)}")
    return str(value)


def names(value: object) -> tuple[str, ...] | None:
    """The queues of a claim, each once, in the order given; None means any."""
    if value is None:
        return None
    if isinstance(value, str):
        return (name("queue", value),)
    if not isinstance(value, Iterable):
        raise SettingInvalid(f"queues must be a list of names, or None for any; got {shown(value)}")
    found = tuple(dict.fromkeys(name("queue", each) for each in value))
    if not 1 <= len(found) <= QUEUES_MAX:
        raise SettingInvalid(f"queues must be 1 to {QUEUES_MAX:,} names, or None for any; got {len(found):,}")
    return found


def group(value: object) -> str:
    """The group of a claim; None means the nameless one."""
    return NAMELESS if value is None else name("group", value)


def text(what: str, value: object) -> str | None:
    """A key, dedup key or worker's name, or None."""
    return None if value is None else TEXT.check(what, value)


def job_id(value: object, what: str = "job_id") -> str:
    """Text that may be a job's id. Whether there is such a job is for the queue to say."""
    if not isinstance(value, str) or not 1 <= len(value) <= JOB_ID_CHARS_MAX or not is_clean(value):
        raise SettingInvalid(f"{what} must be the id of a job, as in job.id; got {shown(value)}")
    return str(value)


def status(value: object) -> JobStatus | None:
    return cast("JobStatus | None", STATUS.check("status", value))


def headers(value: object) -> dict[str, str] | None:
    """A copy of the headers; None if there are none."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise SettingInvalid(f"headers must be a dict of text to text; got {shown(value)}")
    if len(value) > HEADERS_MAX:
        raise SettingInvalid(f"headers must be at most {HEADERS_MAX}; got {len(value):,}")
    return {_header_name(key): _header_value(key, each) for key, each in value.items()} or None


def _header_name(value: object) -> str:
    if not isinstance(value, str) or not _HEADER_NAME.fullmatch(value):
        raise SettingInvalid(f"a header's name must be 1 to 64 of A-Z a-z 0-9 _ . -; got {shown(value)}")
    return str(value)


def _header_value(key: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > HEADER_CHARS_MAX or not is_clean(value):
        raise SettingInvalid(
            f"header {key}: must be text of at most {HEADER_CHARS_MAX:,} characters without control characters; "
            f"got {shown(value)}"
        )
    return str(value)


def moment_us(what: str, value: object) -> int:
    """A time-zone-aware datetime as microseconds since 1970; what is before counts as 1970."""
    if not isinstance(value, datetime):
        raise SettingInvalid(f"{what} must be a datetime with a time zone; got {shown(value)}")
    if value.utcoffset() is None:
        raise SettingInvalid(
            f"{what} must have a time zone: {value.isoformat()} is another moment on each machine that reads it. "
            "Add one, as in datetime(…, tzinfo=UTC) or .astimezone()"
        )
    return max(0, (value - _EPOCH) // _MICROSECOND)


def moment(time_us: int) -> datetime | None:
    """The way back; 0 means "not set"."""
    return _EPOCH + timedelta(microseconds=time_us) if time_us else None


def us(seconds: float) -> int:
    return round(seconds * 1_000_000)


def ms(seconds: float) -> int:
    return round(seconds * 1_000)


def error_text(error: object) -> str:
    """What is kept of an error: text as it is, an exception as "Type: message"; cut to 4,096 characters, and lone
    surrogates replaced by "?"."""
    if isinstance(error, BaseException):
        error = _described(error)
    if not isinstance(error, str):
        raise SettingInvalid(f"error must be text or an exception; got {shown(error)}")
    return error[:ERROR_CHARS_MAX].encode("utf-8", "replace").decode()


def _described(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        message = str(error)
    except Exception:
        message = "(its message can't be shown)"
    return f"{kind}: {message}" if message else kind
