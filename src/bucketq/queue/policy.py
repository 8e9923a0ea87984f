"""Numbers that follow from settings: back-off, the rate's bucket, the next tick of a schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim

from bucketq.queue.rows import Backoff, GroupRow, ScheduleRow

TOKEN_MICRO = 1_000_000
HOUR_S = 3_600
SKIP_GRACE_US = 60_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def backoff_us(backoff: Backoff, attempt: int, random: float) -> int:
    """How long a job waits after its failure number `attempt`: full jitter."""
    exponent = min(attempt - 1, 1_000)
    try:
        ceiling_ms = min(float(backoff.max_ms), backoff.initial_ms * backoff.factor**exponent)
    except OverflowError:
        ceiling_ms = float(backoff.max_ms)
    return int(ceiling_ms * 1_000 * random)


def tokens_micro(group: GroupRow, rate_per_hour: int, now_us: int) -> int:
    """What the rate's bucket holds by now."""
    filled = group.tokens_micro + rate_per_hour * max(0, now_us - group.tokens_us) // HOUR_S
    return min(bucket_micro(rate_per_hour), filled)


def bucket_micro(rate_per_hour: int) -> int:
    """The bucket's size: a second's worth, at least one token."""
    return max(TOKEN_MICRO, rate_per_hour * TOKEN_MICRO // HOUR_S)


def refill_us(tokens: int, rate_per_hour: int, now_us: int) -> int:
    """When the bucket holds a whole token again."""
    return now_us + -(-(TOKEN_MICRO - tokens) * HOUR_S // rate_per_hour)


def tick_after_us(schedule: ScheduleRow, after_us: int) -> int:
    """The first tick after a moment. Intervals count from the epoch, so that every process agrees on them."""
    if schedule.every_ms:
        every_us = schedule.every_ms * 1_000
        return after_us - after_us % every_us + every_us
    return _cron_after_us(schedule.cron or "", schedule.timezone, after_us)


@lru_cache(maxsize=4_096)
def _cron_after_us(cron: str, timezone: str, after_us: int) -> int:
    moment = (_EPOCH + timedelta(microseconds=after_us)).astimezone(ZoneInfo(timezone))
    tick: datetime = next(CronSim(cron, moment))
    return (tick.astimezone(UTC) - _EPOCH) // _MICROSECOND
