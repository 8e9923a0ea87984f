from __future__ import annotations

import math
from datetime import timedelta

import pytest

import bucketq
from bucketq.client.changes import queue_changes
from bucketq.errors import SettingInvalid
from bucketq.queue.rows import Backoff, QueueRow

LIMITS = ("max_running", "max_running_per_key", "max_waiting")


def test_every_setting_becomes_a_field_of_the_row():
    changes = queue_changes(
        lease=1.5,
        max_attempts=3,
        backoff=2,
        max_running=4,
        max_running_per_key=5,
        max_waiting=6,
        rate=0.5,
        ordered=True,
        dedup_window=timedelta(hours=2),
        retention=None,
        result_ttl=0,
        keep_finished=60,
    )
    assert changes == {
        "lease_ms": 1_500,
        "max_attempts": 3,
        "backoff": Backoff(2_000, 2.0, 3_600_000),
        "max_running": 4,
        "max_running_per_key": 5,
        "max_waiting": 6,
        "rate_per_hour": 1_800,
        "ordered": True,
        "dedup_window_ms": 7_200_000,
        "retention_ms": None,
        "result_ttl_ms": 0,
        "keep_finished_ms": 60_000,
    }
    assert set(changes) == set(QueueRow.__struct_fields__) - {"name", "paused"}


@pytest.mark.parametrize(
    ("given", "per_hour"),
    [(100, 360_000), (0.5, 1_800), ("100/s", 360_000), ("100/m", 6_000), ("7 / h", 7), ("0.5/m", 30), (None, None)],
)
def test_a_rate_is_kept_per_hour(given, per_hour):
    assert queue_changes(rate=given) == {"rate_per_hour": per_hour}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (10, Backoff(10_000, 2.0, 3_600_000)),
        (0, Backoff(0, 2.0, 3_600_000)),
        (timedelta(hours=2), Backoff(7_200_000, 2.0, 7_200_000)),
        (bucketq.Backoff(), Backoff()),
        (bucketq.Backoff(initial=0.5, factor=3, max=9), Backoff(500, 3.0, 9_000)),
        ({"initial": 2.0, "max": 4}, Backoff(2_000, 2.0, 4_000)),
    ],
)
def test_a_backoff_may_be_said_in_three_ways(given, kept):
    assert queue_changes(backoff=given) == {"backoff": kept}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((limit, bad) for limit in LIMITS for bad in (0, -1, 1.0, True)),
        *(("max_attempts", bad) for bad in (0, 1_001, True, None, 2.0, "5")),
        *(("lease", bad) for bad in (0, -1, 0.05, 700_000, math.nan, math.inf, True, None, "30")),
        *(("rate", bad) for bad in (0, -1, math.nan, math.inf, True, "fast", "10/d", "-1/s", "0/s", 0.0001, 10**400)),
        *(("ordered", bad) for bad in (1, 0, None, "yes")),
        *(("dedup_window", bad) for bad in (-1, math.nan, None, True)),
        *(("retention", bad) for bad in (-1, math.nan, math.inf, True, "1d")),
        *(("result_ttl", bad) for bad in (-1, None, True)),
        *(("keep_finished", bad) for bad in (-1, None, True)),
        *(("backoff", bad) for bad in (-1, math.nan, None, True, "1", [1])),
        ("backoff", bucketq.Backoff(factor=0.5)),
        ("backoff", bucketq.Backoff(factor=math.nan)),
        ("backoff", bucketq.Backoff(factor=True)),
        ("backoff", bucketq.Backoff(initial=-1)),
        ("backoff", bucketq.Backoff(initial=10, max=5)),
        ("backoff", {"initial": "1"}),
    ],
)
def test_an_impossible_value_is_refused_with_the_rule(name, value):
    with pytest.raises(SettingInvalid, match=f"{name}.* must be "):
        queue_changes(**{name: value})


def test_an_unknown_setting_names_the_known_ones_and_the_nearest():
    with pytest.raises(SettingInvalid, match=r"'max_runing'; did you mean 'max_running'.*keep_finished, lease"):
        queue_changes(max_runing=1)
    with pytest.raises(SettingInvalid, match="did you mean 'factor'"):
        queue_changes(backoff={"facter": 2})


async def test_a_queue_shows_its_settings_in_the_callers_units(client):
    mail = client.queue("mail")
    before = await mail.settings()
    assert (before.lease, before.max_attempts, before.rate, before.paused) == (30.0, 5, None, False)
    after = await mail.configure(lease=1.5, rate="90/m", backoff=bucketq.Backoff(initial=0.5), retention=None)
    assert after == await mail.settings()
    assert (after.lease, after.rate, after.backoff.initial, after.retention) == (1.5, 1.5, 0.5, None)
    assert after.max_attempts == 5
    assert (await mail.configure(max_running=3)).lease == 1.5
    assert (await mail.configure(max_running=None)).max_running is None
