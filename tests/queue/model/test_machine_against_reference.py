"""The state machine does what the rules say: the same commands, given to the machine and to a plain reference.

Each class explores one corner deeply. After every command the answers are compared; every few batches all that can
be seen, the invariants, and the rows of a follower that only replays.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine
from msgspec import Raw

from bucketq.queue import commands as c
from bucketq.queue.rows import NAMELESS, ScheduleRow
from tests.queue.model.pair import SECOND_US
from tests.queue.model.rules import (
    HOUR_US,
    MINUTE_US,
    QUICK,
    Archive,
    ByName,
    Changes,
    Claims,
    Groups,
    Purges,
    Pushes,
    Schedules,
    Together,
)

pytestmark = pytest.mark.long

EFFORT = {"quick": 0.1, "long": 20.0}.get(os.environ.get("HYPOTHESIS_PROFILE", ""), 1.0)


def effort(examples: int) -> settings:
    """How many runs of 50 steps; scaled by the profile."""
    return settings(
        max_examples=max(1, int(examples * EFFORT)),
        stateful_step_count=50,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


class Lifecycle(Pushes, Together, ByName):
    items = (
        c.PushItem(Raw(b"1")),
        c.PushItem(Raw(b"1"), max_attempts=1, headers={"h": "1"}),
        c.PushItem(Raw(b'"AA=="'), binary=True, delay_us=SECOND_US),
        c.PushItem(Raw(b"1"), priority=-1, ttl_us=5 * SECOND_US),
        c.PushItem(Raw(b"1"), priority=1),
        c.PushItem(Raw(b"1"), key="x"),
    )
    claims = (
        c.Claim((), worker="w"),
        c.Claim((), 2, lease_ms=1_500),
        c.Claim(None, 3, worker="v"),
        c.Claim((), 2, auto_complete=True),
    )


class Lines(Pushes, Claims, Changes):
    """Order, keys and limits."""

    queues = ("a", "b")
    items = (
        c.PushItem(Raw(b"1")),
        c.PushItem(Raw(b"1"), key="x"),
        c.PushItem(Raw(b"1")),
        c.PushItem(Raw(b"1"), key="y"),
        c.PushItem(Raw(b"1"), priority=1, key="x"),
        c.PushItem(Raw(b"1"), key="x", delay_us=SECOND_US),
        c.PushItem(Raw(b"1"), priority=1),
        c.PushItem(Raw(b"1"), key="y", ttl_us=3 * SECOND_US),
    )
    claims = (
        c.Claim(()),
        c.Claim((), 2),
        c.Claim(("a", "b"), 3),
        c.Claim(("b", "a")),
        c.Claim(None, 2),
        c.Claim((), key="x"),
        c.Claim((), 2, auto_complete=True),
    )
    settings = (
        {"lease_ms": 4_000, "backoff": QUICK},
        {"ordered": True, "lease_ms": 4_000},
        {"max_running": 2, "lease_ms": 4_000},
        {"max_running_per_key": 1, "lease_ms": 4_000},
        {"rate_per_hour": 3_600, "lease_ms": 4_000},
        {"max_waiting": 4, "lease_ms": 4_000},
    )
    changes = (
        {"ordered": True},
        {"ordered": False},
        {"max_running": 1},
        {"max_running": 3},
        {"max_running": None},
        {"max_running_per_key": 1},
        {"max_running_per_key": 2},
        {"max_running_per_key": None},
        {"rate_per_hour": 7_200},
        {"rate_per_hour": 1_000},
        {"rate_per_hour": None},
        {"max_waiting": 2},
        {"max_waiting": None},
        {"max_attempts": 1, "lease_ms": 2_000},
    )


class ConsumerGroups(Pushes, Claims, ByName, Groups, Archive):
    queues = ("a",)
    groups = (NAMELESS, "g", "h")
    items = (
        c.PushItem(Raw(b"1")),
        c.PushItem(Raw(b"1"), key="x"),
        c.PushItem(Raw(b"1"), max_attempts=1),
        c.PushItem(Raw(b"1"), ttl_us=5 * SECOND_US),
    )
    claims = (
        c.Claim((), group="g"),
        c.Claim((), group="h"),
        c.Claim((), 2),
        c.Claim(None, 2, group="g"),
        c.Claim(None, 2, group="h", auto_complete=True),
        c.Claim(None),
    )
    settings = (
        {"lease_ms": 4_000, "max_attempts": 2, "backoff": QUICK},
        {"ordered": True, "lease_ms": 4_000, "max_attempts": 2, "backoff": QUICK},
        {"max_running": 1, "max_waiting": 4, "lease_ms": 4_000, "retention_ms": 0},
        {"rate_per_hour": 3_600, "keep_finished_ms": 5_000},
    )


class Time(Pushes, Claims, Schedules, Archive):
    """Schedules, ttl and what keeps a finished job."""

    queues = ("a",)
    waits_us = (SECOND_US // 2, SECOND_US, 3 * SECOND_US, 10 * SECOND_US, MINUTE_US, 10 * MINUTE_US, HOUR_US)
    items = (
        c.PushItem(Raw(b"1")),
        c.PushItem(Raw(b"1"), ttl_us=SECOND_US),
        c.PushItem(Raw(b"1"), ttl_us=10 * SECOND_US, delay_us=SECOND_US),
        c.PushItem(Raw(b"1"), ttl_us=10 * SECOND_US, delay_us=20 * SECOND_US),
        c.PushItem(Raw(b"1"), ttl_us=MINUTE_US, max_attempts=1),
    )
    settings = (
        {"lease_ms": 4_000, "max_attempts": 2, "backoff": QUICK},
        {"lease_ms": 4_000, "max_attempts": 2, "retention_ms": 20_000, "result_ttl_ms": 5_000, "ordered": True},
        {"lease_ms": 4_000, "max_attempts": 1, "retention_ms": None, "keep_finished_ms": 10_000},
        {"lease_ms": 4_000, "retention_ms": 0, "result_ttl_ms": 0},
    )
    schedules = (
        ScheduleRow("s", "a", Raw(b"100"), 0, every_ms=10_000),
        ScheduleRow("t", "a", Raw(b"101"), 0, every_ms=30_000, catch_up="all", ttl_ms=10_000),
        ScheduleRow("u", "a", Raw(b"102"), 0, every_ms=7_000, catch_up="skip", key="x"),
        ScheduleRow("v", "a", Raw(b"103"), 0, cron="*/5 * * * *"),
        ScheduleRow("s", "a", Raw(b"104"), 0, cron="*/7 * * * *", catch_up="all", priority=1),
        ScheduleRow("t", "a", Raw(b"105"), 0, cron="30 */1 * * *", catch_up="skip", timezone="Europe/Paris"),
        ScheduleRow("u", "a", Raw(b"106"), 0, every_ms=7_000, max_attempts=1),
    )


class Endings(Pushes, Claims, ByName, Archive, Purges):
    """The archive, and what waits for it: retry, purge; and dedup, which outlives the job."""

    queues = ("a", "b")
    items = (
        c.PushItem(Raw(b"1")),
        c.PushItem(Raw(b"1"), max_attempts=1),
        c.PushItem(Raw(b"1"), dedup="d"),
        c.PushItem(Raw(b"2"), dedup="d", dedup_window_us=5 * SECOND_US),
        c.PushItem(Raw(b"3"), dedup="f", dedup_window_us=2 * SECOND_US, max_attempts=1),
        c.PushItem(Raw(b"4"), delay_us=2 * SECOND_US),
        c.PushItem(Raw(b"4"), ttl_us=2 * SECOND_US, dedup="f"),
    )
    settings = (
        {"lease_ms": 4_000, "max_attempts": 2, "backoff": QUICK, "dedup_window_ms": 10_000},
        {"lease_ms": 4_000, "max_attempts": 1, "retention_ms": 5_000, "max_waiting": 5},
        {"lease_ms": 4_000, "max_attempts": 1, "keep_finished_ms": 5_000, "result_ttl_ms": 10_000, "ordered": True},
    )


class Everything(Pushes, Together, ByName, Changes, Groups, Schedules, Archive, Purges):
    queues = ("a", "b")
    groups = (NAMELESS, "g")
    waits_us = Time.waits_us
    schedules = Time.schedules
    items = (*Lines.items, *Endings.items, *Time.items)
    claims = (*Lines.claims, c.Claim((), group="g"), c.Claim(("a",), 2, group="g"), c.Claim(None, group="g"))
    settings = (*Lines.settings, *Endings.settings)
    changes = (*Lines.changes, *Time.settings)


def case(machine: type[RuleBasedStateMachine], examples: int) -> type:
    test: type = machine.TestCase
    test.settings = effort(examples)  # type: ignore[attr-defined]
    return test


TestLifecycle = case(Lifecycle, 400)
TestLines = case(Lines, 400)
TestConsumerGroups = case(ConsumerGroups, 400)
TestTime = case(Time, 400)
TestEndings = case(Endings, 400)
TestEverything = case(Everything, 400)
