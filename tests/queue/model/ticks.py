"""When a schedule ticks, one tick after the other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim

from bucketq.queue.rows import ScheduleRow

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE_US = 60_000_000


def tick_after(schedule: ScheduleRow, t_us: int) -> int:
    """The first tick after a moment. Intervals tick at the whole multiples of their length since 1970."""
    if schedule.cron is None:
        every_us = schedule.every_ms * 1_000
        return (t_us // every_us + 1) * every_us
    moment = (EPOCH + timedelta(microseconds=t_us)).astimezone(ZoneInfo(schedule.timezone))
    return (next(CronSim(schedule.cron, moment)) - EPOCH) // timedelta(microseconds=1)


def same_ticks(one: ScheduleRow, other: ScheduleRow) -> bool:
    return (one.cron, one.every_ms, one.timezone) == (other.cron, other.every_ms, other.timezone)


def due_ticks(schedule: ScheduleRow, now_us: int) -> tuple[int, int]:
    """How many jobs the schedule makes now, and its next tick after that."""
    ticks: list[int] = []
    tick_us = schedule.next_us
    while tick_us <= now_us:
        ticks.append(tick_us)
        tick_us = tick_after(schedule, tick_us)
    if not ticks:
        return 0, tick_us
    if schedule.catch_up == "skip":
        return int(now_us - ticks[-1] < MINUTE_US), tick_us
    return len(ticks) if schedule.catch_up == "all" else 1, tick_us
