from __future__ import annotations

import math

import pytest

from bucketq.errors import PayloadInvalid, SettingInvalid


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({}, "either cron"),
        ({"cron": "* * * * *", "every": 5}, "either cron"),
        ({"cron": ""}, "cron must be text"),
        ({"cron": "61 * * * *"}, "cron must be text"),
        ({"cron": "* * * *"}, "cron must be text"),
        ({"cron": "x" * 300}, "cron must be text"),
        ({"cron": 5}, "cron must be text"),
        ({"cron": "0 0 30 2 *"}, "no such moment|cron must be text"),
        *(({"every": bad}, "every must be seconds") for bad in (0, -1, 0.05, math.nan, math.inf, True, "5")),
        *(
            ({"every": 5, "timezone": bad}, "timezone must be a name")
            for bad in ("Mars/Olympus", "", "../etc/passwd", "/etc/localtime", "America", None, 5, "a\0b")
        ),
        ({"every": 5, "catch_up": "some"}, "catch_up must be one of 'skip', 'one', 'all'"),
        ({"every": 5, "paused": 1}, "paused must be True or False"),
        ({"every": 5, "priority": True}, "priority must be"),
        ({"every": 5, "key": ""}, "key must be"),
        ({"every": 5, "ttl": 0}, "ttl must be"),
        ({"every": 5, "max_attempts": 0}, "max_attempts must be"),
        ({"every": 5, "headers": {"a": 1}}, "header a"),
    ],
)
async def test_a_bad_schedule_is_refused(client, tap, options, rule):
    with pytest.raises(SettingInvalid, match=rule):
        await client.queue("mail").schedule("nightly", 1, **options)
    assert tap.seen == []


async def test_a_bad_name_or_payload_is_refused(client, tap):
    with pytest.raises(SettingInvalid, match="schedule must be 1 to 100 of"):
        await client.queue("mail").schedule("a b", 1, every=5)
    with pytest.raises(PayloadInvalid):
        await client.queue("mail", int).schedule("a", "x", every=5)
    assert tap.seen == []


async def test_a_schedule_makes_jobs_and_can_be_removed(client, clock):
    mail = client.queue("mail")
    options = {"priority": 2, "key": "k", "ttl": 1.5, "max_attempts": 3, "headers": {"h": "v"}}
    made = await mail.schedule("tick", {"a": 1}, every=60, **options)
    assert (made.name, made.queue, made.every, made.cron, made.payload) == ("tick", "mail", 60.0, None, {"a": 1})
    assert (made.priority, made.key, made.ttl, made.max_attempts, made.headers) == (2, "k", 1.5, 3, {"h": "v"})
    assert made.next_at is not None
    assert "every 60 s" in repr(made)
    cron = await mail.schedule("cron", b"x", cron="0 9 * * 1-5", timezone="Europe/Berlin", catch_up="skip", paused=True)
    assert (cron.cron, cron.timezone, cron.catch_up, cron.paused) == ("0 9 * * 1-5", "Europe/Berlin", "skip", True)
    assert (cron.payload, cron.every, cron.ttl, cron.max_attempts) == (b"x", None, None, None)
    assert [each.name for each in await mail.schedules()] == ["cron", "tick"]
    assert await client.queue("other").schedules() == []
    await clock.advance(61)
    await client.upkeep()
    (claim,) = await mail.claim(n=10)
    assert claim.payload == {"a": 1}
    assert await mail.unschedule("tick") is True
    assert await mail.unschedule("tick") is False
