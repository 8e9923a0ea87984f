from __future__ import annotations

import math
from datetime import timedelta

import pytest

from bucketq.errors import SettingInvalid
from bucketq.settings import Settings


def test_the_defaults_are_those_of_the_design():
    settings = Settings.checked({})
    assert settings.mode == "auto"
    assert settings.payload_bytes_max == 256 * 1024
    assert settings.commit_interval_s == 0.0
    assert settings.batch_count_max == 10_000
    assert settings.batch_bytes_max == 4 * 1024 * 1024
    assert settings.clock_skew_max_s == 600.0
    assert settings.archive_retention_s is None
    assert settings.inline_bytes_max == 1024 * 1024
    assert settings.conflict_timeout_s == 60.0
    assert settings.probe is True


def test_two_clients_have_two_worker_names():
    assert Settings.checked({}).worker != Settings.checked({}).worker


def test_an_unknown_setting_names_the_known_ones_and_the_nearest():
    with pytest.raises(SettingInvalid, match=r"'comit_interval'; did you mean 'commit_interval'\?.*batch_bytes_max"):
        Settings.checked({}, comit_interval=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "fast"),
        ("mode", None),
        ("payload_bytes_max", 0),
        ("payload_bytes_max", True),
        ("payload_bytes_max", 1.5),
        ("payload_bytes_max", "many"),
        ("commit_interval", -1),
        ("commit_interval", math.nan),
        ("commit_interval", math.inf),
        ("commit_interval", True),
        ("commit_interval", "1"),
        ("commit_interval", None),
        ("batch_count_max", 0),
        ("batch_bytes_max", -1),
        ("clock_skew_max", 0),
        ("archive_retention", -1),
        ("inline_bytes_max", -1),
        ("conflict_timeout", 0),
        ("probe", 1),
        ("probe", None),
        ("worker", ""),
        ("worker", "a\nb"),
        ("worker", "\ud800"),
        ("worker", "x" * 257),
    ],
)
def test_an_impossible_value_is_refused_with_the_rule(name, value):
    with pytest.raises(SettingInvalid, match=f"{name} must be "):
        Settings.checked({}, **{name: value})


def test_a_duration_may_be_a_timedelta():
    assert Settings.checked({}, commit_interval=timedelta(milliseconds=250)).commit_interval_s == 0.25


def test_the_environment_gives_what_the_caller_does_not():
    environ = {
        "BUCKETQ_MODE": "direct",
        "BUCKETQ_COMMIT_INTERVAL": "0.5",
        "BUCKETQ_BATCH_COUNT_MAX": "7",
        "BUCKETQ_PROBE": "false",
        "BUCKETQ_ARCHIVE_RETENTION": "none",
        "BUCKETQ_SOMETHING_ELSE": "x",
    }
    settings = Settings.checked(environ, batch_count_max=9)
    assert (settings.mode, settings.commit_interval_s, settings.probe) == ("direct", 0.5, False)
    assert settings.batch_count_max == 9
    assert settings.archive_retention_s is None


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("BUCKETQ_COMMIT_INTERVAL", "soon"),
        ("BUCKETQ_COMMIT_INTERVAL", "nan"),
        ("BUCKETQ_BATCH_COUNT_MAX", "1.5"),
        ("BUCKETQ_PROBE", "maybe"),
        ("BUCKETQ_MODE", ""),
    ],
)
def test_a_bad_variable_is_named(variable, text):
    with pytest.raises(SettingInvalid, match=variable):
        Settings.checked({variable: text})


def test_the_process_environment_is_read(monkeypatch):
    monkeypatch.setenv("BUCKETQ_WORKER", "from-outside")
    assert Settings.checked().worker == "from-outside"
