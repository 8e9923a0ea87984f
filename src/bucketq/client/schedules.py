"""Schedules: jobs made by cron text or at intervals."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Generic, Literal, TypeVar, get_args
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from bucketq.client import checks
from bucketq.client.codecs import Codec
from bucketq.client.parts import push_item
from bucketq.errors import SettingInvalid
from bucketq.queue.rows import ScheduleRow
from bucketq.settings import DAY_S, Choice, Duration, Flag, Seconds, shown

T = TypeVar("T")

CatchUp = Literal["skip", "one", "all"]

_CATCH_UP = Choice(get_args(CatchUp))
_EVERY = Seconds(0.1, 3_660 * DAY_S)
_CRON_CHARS_MAX = 256
_SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC)


class Schedule(Generic[T]):
    """A schedule as it stood when the call was answered. `every`, `ttl` are seconds, times are UTC."""

    __slots__ = ("_codec", "_row")

    def __init__(self, row: ScheduleRow, codec: Codec[T]) -> None:
        self._row = row
        self._codec = codec

    @property
    def name(self) -> str:
        return self._row.name

    @property
    def queue(self) -> str:
        return self._row.queue

    @property
    def payload(self) -> T:
        """Raises `PayloadInvalid` if it is not of the queue's type."""
        return self._codec.decode(self._row.payload, self._row.binary)

    @property
    def cron(self) -> str | None:
        return self._row.cron

    @property
    def every(self) -> float | None:
        return self._row.every_ms / 1_000 if self._row.every_ms else None

    @property
    def timezone(self) -> str:
        return self._row.timezone

    @property
    def catch_up(self) -> CatchUp:
        return self._row.catch_up

    @property
    def paused(self) -> bool:
        return self._row.paused

    @property
    def next_at(self) -> datetime | None:
        """The tick that comes next."""
        return checks.moment(self._row.next_us)

    @property
    def priority(self) -> int:
        return self._row.priority

    @property
    def key(self) -> str | None:
        return self._row.key

    @property
    def max_attempts(self) -> int | None:
        return self._row.max_attempts or None

    @property
    def ttl(self) -> float | None:
        return self._row.ttl_ms / 1_000 if self._row.ttl_ms else None

    @property
    def headers(self) -> dict[str, str]:
        return dict(self._row.headers or {})

    def __repr__(self) -> str:
        when = self.cron if self.cron is not None else f"every {self.every:g} s"
        return f"<Schedule {self.name} of {self.queue}: {when}>"


def schedule_row(
    name: str,
    queue: str,
    payload: Any,
    codec: Codec[Any],
    *,
    cron: str | None,
    every: Duration | None,
    timezone: str,
    catch_up: str,
    paused: bool,
    **options: Any,
) -> ScheduleRow:
    """A checked schedule; `options` are those of a push. Raises `SettingInvalid`, `PayloadInvalid` and
    `PayloadTooLarge`."""
    if (cron is None) == (every is None):
        raise SettingInvalid("a schedule needs either cron (text) or every (seconds)")
    item = push_item(*codec.encode(payload), **options)
    return ScheduleRow(
        name=checks.name("schedule", name),
        queue=queue,
        payload=item.payload,
        next_us=0,
        cron=None if cron is None else _cron(cron),
        every_ms=0 if every is None else checks.ms(_EVERY.check("every", every)),
        timezone=_timezone(timezone),
        catch_up=_CATCH_UP.check("catch_up", catch_up),  # type: ignore[arg-type]
        paused=Flag().check("paused", paused),
        binary=item.binary,
        priority=item.priority,
        key=item.key,
        max_attempts=item.max_attempts,
        ttl_ms=-(-item.ttl_us // 1_000),
        headers=item.headers,
    )


def _cron(text: object) -> str:
    if not isinstance(text, str) or len(text) > _CRON_CHARS_MAX:
        raise SettingInvalid(f"cron must be text such as '*/5 * * * *'; got {shown(text)}")
    try:
        next(CronSim(text, _SOME_DAY))
    except CronSimError as error:
        raise SettingInvalid(f"cron must be text such as '*/5 * * * *'; got {shown(text)}: {error}") from error
    except StopIteration:
        raise SettingInvalid(f"cron {shown(text)}: no such moment ever comes") from None
    return text


def _timezone(name: object) -> str:
    if name == "UTC":
        return "UTC"
    try:
        ZoneInfo(name)  # type: ignore[arg-type]
    except Exception as error:  # what is not a name of a zone fails in many ways, as a directory of zones does
        raise SettingInvalid(f"timezone must be a name such as 'Europe/Berlin'; got {shown(name)}") from error
    assert isinstance(name, str)
    return name
