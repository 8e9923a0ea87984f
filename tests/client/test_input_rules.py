"""Every bad input is refused before anything is sent, by an error that says the rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import pytest

import bucketq
from bucketq.client import checks
from bucketq.errors import SettingInvalid
from bucketq.queue import commands as c

Call = Callable[[], Any]

NAMES_BAD = ["", ".a", "-a", "_a", "a b", "a/b", "ä", "a\n", "x" * 101, None, 5, b"mail", "\ud800"]
TEXTS_BAD = ["", "x" * 257, "a\x00", "a\nb", "\x7f", "\x9f", "\u2028", "\ud800", 5, b"x", True]
SECONDS_BAD = [-1, -0.001, math.nan, math.inf, -math.inf, True, "1", 10**400, timedelta(seconds=-1)]


@pytest.mark.parametrize("name", NAMES_BAD)
async def test_a_bad_queue_name_is_refused(client, name):
    with pytest.raises(SettingInvalid, match="queue must be 1 to 100 of"):
        client.queue(name)


@pytest.mark.parametrize("name", ["a", "0", "A.b_c-9", "x" * 100])
async def test_a_good_queue_name_is_taken(client, name):
    assert client.queue(name).name == name


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        *(("priority", bad, "an integer from") for bad in (1.0, True, False, "1", None, 2**53 + 1, -(2**53) - 1)),
        *(("delay", bad, "delay must be seconds") for bad in (*SECONDS_BAD, None, "")),
        *(("ttl", bad, "ttl must be seconds") for bad in (*SECONDS_BAD, 0)),
        *(("dedup_window", bad, "dedup") for bad in (*SECONDS_BAD, 1.0)),
        *(("key", bad, "key must be text of 1 to 256") for bad in TEXTS_BAD),
        *(("dedup", bad, "dedup must be text of 1 to 256") for bad in TEXTS_BAD),
        *(("max_attempts", bad, "an integer from 1 to 1,000") for bad in (0, -1, 1_001, 1.0, True, "3")),
        ("run_at", datetime(2026, 1, 1), "must have a time zone: 2026-01-01T00:00:00 is another moment"),  # noqa: DTZ001
        ("run_at", 1_767_225_600, "a datetime with a time zone"),
        ("run_at", "2026-01-01", "a datetime with a time zone"),
        ("headers", [("a", "b")], "a dict"),
        ("headers", {f"h{i}": "" for i in range(33)}, "at most 32; got 33"),
        ("headers", {"a b": "x"}, "a header's name"),
        ("headers", {"": "x"}, "a header's name"),
        ("headers", {"x" * 65: "x"}, "a header's name"),
        ("headers", {1: "x"}, "a header's name"),
        ("headers", {"a": 1}, "header a: must be text"),
        ("headers", {"a": "x" * 1_025}, "header a: must be text"),
        ("headers", {"a": "x\r\ny"}, "header a: must be text"),
        ("headers", {"a": "\udc00"}, "header a: must be text"),
    ],
)
async def test_a_bad_option_of_a_push_is_refused(client, tap, option, value, rule):
    mail = client.queue("mail")
    calls: list[Call] = [
        lambda: mail.push(1, **{option: value}),
        lambda: mail.push_many([1], **{option: value}),
        lambda: mail.push_many([bucketq.Push(1, **{option: value})]),
        lambda: client.transact([bucketq.PushTo("mail", 1, **{option: value})]),
    ]
    for push in calls:
        with pytest.raises(SettingInvalid, match=rule):
            await push()
    assert tap.seen == []


async def test_run_at_and_delay_together_are_refused(client, tap):
    with pytest.raises(SettingInvalid, match="give one of them"):
        await client.queue("mail").push(1, delay=1, run_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert tap.seen == []


async def test_an_unknown_option_of_a_push_names_the_nearest():
    with pytest.raises(SettingInvalid, match="did you mean 'priority'"):
        bucketq.Push(1, priorty=1)  # type: ignore[call-arg]
    with pytest.raises(SettingInvalid, match="did you mean 'headers'"):
        bucketq.PushTo("mail", 1, header={})  # type: ignore[call-arg]


async def test_good_options_arrive_in_the_commands_units(client, tap):
    run_at = datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=timezone(timedelta(hours=2)))
    await client.queue("mail").push(
        {"a": 1},
        priority=-5,
        run_at=run_at,
        key="kä",
        dedup="d",
        dedup_window=0.5,
        max_attempts=3,
        headers={"X-a.b_c": "v"},
        ttl=timedelta(minutes=1),
    )
    await client.queue("mail").push(b"raw", delay=1.5)
    (first,), (second,) = (push.items for push in tap.of(c.Push))
    assert bytes(first.payload) == b'{"a":1}'
    assert (first.priority, first.key, first.dedup, first.max_attempts) == (-5, "kä", "d", 3)
    assert first.run_us == 1_772_359_200_000_001
    assert (first.delay_us, first.dedup_window_us, first.ttl_us) == (0, 500_000, 60_000_000)
    assert first.headers == {"X-a.b_c": "v"}
    assert (bytes(second.payload), second.binary, second.delay_us) == (b'"cmF3"', True, 1_500_000)


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        *(("n", bad, "n must be an integer from 1 to 10,000") for bad in (0, -1, 10_001, 1.0, True, None)),
        *(("wait", bad, "wait must be seconds") for bad in (*SECONDS_BAD, None, 86_401)),
        *(("lease", bad, "lease must be seconds .* from 0.1 to 604800") for bad in (*SECONDS_BAD, 0, 0.09, 604_801)),
        *(("worker", bad, "worker must be text of 1 to 256") for bad in TEXTS_BAD),
        *(("key", bad, "key must be text of 1 to 256") for bad in TEXTS_BAD),
        *(("group", bad, "group must be 1 to 100 of") for bad in NAMES_BAD if bad is not None),
        *(("auto_complete", bad, "auto_complete must be True or False") for bad in (1, None, "yes")),
    ],
)
async def test_a_bad_option_of_a_claim_is_refused(client, tap, option, value, rule):
    mail = client.queue("mail")
    calls: list[Call] = [lambda: mail.claim(**{option: value}), lambda: client.claim(["mail"], **{option: value})]
    if option != "wait":
        calls.append(lambda: mail.claims(**{option: value}))
    for call in calls:
        with pytest.raises(SettingInvalid, match=rule):
            await call()
    assert tap.seen == []


@pytest.mark.parametrize("queues", [[], [""], ["a", None], 5, [b"mail"], [f"q{i}" for i in range(1_001)]])
async def test_bad_queues_of_a_claim_are_refused(client, tap, queues):
    with pytest.raises(SettingInvalid, match=r"queues? must be"):
        await client.claim(queues)
    assert tap.seen == []


async def test_the_queues_of_a_claim_keep_their_order(client, tap):
    await client.claim(["b", "a", "b"], lease=0.1, n=3)
    await client.claim("one")
    await client.claim()
    assert [claim.queues for claim in tap.of(c.Claim)] == [("b", "a"), ("one",), None]
    assert tap.of(c.Claim)[0] == c.Claim(("b", "a"), 3, 100, "me")


@pytest.mark.parametrize("job_id", ["", "x" * 129, "a\nb", "\ud800", None, 5, b"x"])
async def test_what_can_be_no_job_id_is_refused(client, tap, job_id):
    mail = client.queue("mail")
    for verb in (mail.get, mail.cancel, mail.retry):
        with pytest.raises(SettingInvalid, match="job_id must be the id of a job"):
            await verb(job_id)
    if job_id is not None:
        with pytest.raises(SettingInvalid, match="after must be the id of a job"):
            await mail.jobs(after=job_id)
    assert tap.seen == []


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"limit": 0}, "limit must be an integer from 1 to 10,000"),
        ({"limit": 10_001}, "limit must be an integer"),
        ({"limit": True}, "limit must be an integer"),
        ({"status": "waiting"}, "status must be one of 'ready', 'scheduled'"),
        ({"status": 1}, "status must be one of"),
        ({"group": "a b"}, "group must be"),
    ],
)
async def test_a_bad_option_of_a_listing_is_refused(client, tap, options, rule):
    with pytest.raises(SettingInvalid, match=rule):
        await client.queue("mail").jobs(**options)
    assert tap.seen == []


async def test_other_bad_arguments_are_refused(client, tap):
    mail = client.queue("mail")
    calls: list[tuple[Call, str]] = [
        (lambda: mail.purge(status="gone"), "status must be one of"),
        (lambda: mail.stats(group=""), "group must be"),
        (lambda: mail.subscribe("a b"), "group must be"),
        (lambda: mail.subscribe("a", start="old"), "start must be 'new', 'all' or a datetime"),
        (lambda: mail.subscribe("a", start=datetime(2026, 1, 1)), "must have a time zone"),  # noqa: DTZ001
        (lambda: mail.subscribe("a", start=5), "start must be"),
        (lambda: mail.unsubscribe(None), "group must be"),
        (lambda: mail.unschedule(""), "schedule must be"),
        (lambda: mail.complete_many(["x"]), "this must be a claim"),
        (lambda: client.transact(["x"]), "transact takes Complete, Fail, Release and PushTo"),
        (lambda: client.transact([bucketq.Complete(cast("Any", "x"))]), "this must be a claim"),
        (lambda: client.transact([bucketq.PushTo("a b", 1)]), "queue must be"),
    ]
    for call, rule in calls:
        with pytest.raises(SettingInvalid, match=rule):
            await call()
    assert tap.seen == []


@pytest.mark.parametrize("delay", SECONDS_BAD)
async def test_a_bad_delay_of_a_claims_end_is_refused_and_the_claim_goes_on(client, tap, delay):
    mail = client.queue("mail")
    await mail.push(1)
    (claim,) = await mail.claim()
    with pytest.raises(SettingInvalid, match="delay must be seconds"):
        await claim.release(delay)
    with pytest.raises(SettingInvalid, match="retry_in must be seconds"):
        await claim.fail("x", retry_in=delay)
    with pytest.raises(SettingInvalid, match="dead must be True or False"):
        await claim.fail("x", dead=1)
    with pytest.raises(SettingInvalid, match="error must be text or an exception"):
        await claim.fail(None)
    await claim.complete()


class Unshowable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        ("as it is\n\x00", "as it is\n\x00"),
        ("", ""),
        (ValueError("no"), "ValueError: no"),
        (ValueError(), "ValueError"),
        (KeyError("k"), "KeyError: 'k'"),
        ("a\ud800b", "a?b"),
        (ValueError("\udc00"), "ValueError: ?"),
        ("x" * 5_000, "x" * 4_096),
        (Unshowable(), "Unshowable: (its message can't be shown)"),
    ],
)
def test_an_error_is_kept_as_text_that_can_be_stored(error, kept):
    assert checks.error_text(error) == kept


def test_moments_before_1970_count_as_1970_and_others_come_back():
    assert checks.moment_us("at", datetime(1900, 1, 1, tzinfo=UTC)) == 0
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
    assert checks.moment(checks.moment_us("at", moment)) == moment
    assert checks.moment(0) is None
