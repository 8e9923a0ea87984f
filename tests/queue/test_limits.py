"""Limits, pause, dedup: what a queue refuses or holds back."""

import pytest

from bucketq.errors import QueueFull
from bucketq.queue import commands as c
from tests.queue.desk import Desk


def test_max_running_holds_claims_back_until_one_ends(desk: Desk):
    desk.configure(max_running=2)
    for number in range(4):
        desk.push(number)
    claims = desk.claim(4)
    assert len(claims) == 2
    assert desk.claim(4) == []
    desk.complete(claims[0])
    assert desk.payloads(4) == [2]


def test_max_running_per_key_leaves_other_keys_alone(desk: Desk):
    desk.configure(max_running_per_key=1)
    for number in range(3):
        desk.push(f"a{number}", key="a")
    desk.push("b0", key="b")
    desk.push("n0")
    desk.push("n1")
    assert set(desk.payloads(9)) == {"a0", "b0", "n0", "n1"}


def test_a_limit_that_is_lifted_lets_the_rest_through(desk: Desk):
    desk.configure(max_running_per_key=1)
    for number in range(3):
        desk.push(number, key="a")
    assert desk.payloads(9) == [0]
    desk.configure(max_running_per_key=None)
    assert desk.payloads(9) == [1, 2]


def test_the_rate_is_a_bucket_that_refills(desk: Desk):
    desk.configure(rate_per_hour=3_600 * 2)
    for number in range(10):
        desk.push(number)
    assert len(desk.claim(10)) == 2
    assert desk.claim(10) == []
    assert len(desk.after(0.5).claim(10)) == 1
    assert len(desk.after(60).claim(10)) == 2


def test_a_slow_rate_still_lets_one_through_at_first(desk: Desk):
    desk.configure(rate_per_hour=6)
    desk.push(1)
    desk.push(2)
    assert len(desk.claim(5)) == 1
    assert desk.after(599).claim(5) == []
    assert len(desk.after(1).claim(5)) == 1


def test_a_full_queue_refuses_the_whole_push(desk: Desk):
    desk.configure(max_waiting=2)
    desk.push(1)
    item = c.PushItem(desk.claim_one().job.payload)  # type: ignore[union-attr]
    with pytest.raises(QueueFull):
        desk.ask(c.Push("q", (item, item, item)))
    assert desk.stats().ready == 0
    desk.ask(c.Push("q", (item, item)))
    with pytest.raises(QueueFull):
        desk.push(3)


def test_a_paused_queue_takes_pushes_and_gives_no_claims(desk: Desk):
    desk.push(1)
    claim = desk.claim_one()
    desk.ask(c.Pause("q"))
    desk.push(2)
    assert desk.claim() == []
    assert desk.ask(c.Claim(None, 5)) == []
    desk.complete(claim)
    desk.ask(c.Resume("q"))
    assert desk.payloads() == [2]


def test_a_dedup_key_gives_the_first_job_within_its_window(desk: Desk):
    first = desk.push(1, dedup="a")
    again = desk.push(2, dedup="a")
    assert (again.n, again.duplicate) == (first.n, True)
    assert not desk.push(3, dedup="b").duplicate
    assert not desk.push(3, dedup="a", queue="other").duplicate
    assert desk.stats().ready == 2
    desk.after(3_601)
    assert desk.push(4, dedup="a").n != first.n


def test_a_dedup_key_outlives_its_job(desk: Desk):
    first = desk.push(1, dedup="a", dedup_window_us=100_000_000)
    desk.complete(desk.claim_one())
    desk.archive()
    assert first.n not in desk.state.jobs
    again = desk.push(2, dedup="a")
    assert (again.n, again.status, again.duplicate) == (first.n, "done", True)
    desk.after(101)
    assert not desk.push(3, dedup="a").duplicate


def test_two_pushes_of_one_batch_with_one_dedup_key_are_one_job(desk: Desk):
    item = c.PushItem(desk.push(0).job.payload, dedup="x")  # type: ignore[union-attr]
    jobs = desk.ask(c.Push("q", (item, item)))
    assert jobs[0].n == jobs[1].n


def test_stats_tell_the_age_of_the_oldest_ready_job(desk: Desk):
    desk.push(1)
    desk.after(10)
    desk.push(2)
    assert desk.stats().oldest_ready_age == 10
    desk.claim_one()
    assert desk.after(5).stats().oldest_ready_age == 5
    desk.claim_one()
    assert desk.stats().oldest_ready_age == 0


def test_a_change_of_rate_does_not_refill_the_bucket(desk: Desk):
    desk.configure(rate_per_hour=3_600 * 5)
    for number in range(20):
        desk.push(number)
    assert len(desk.claim(20)) == 5
    for per_second in (6, 5, 6):
        desk.configure(rate_per_hour=3_600 * per_second)
        assert desk.claim(20) == []
    assert len(desk.after(0.5).claim(20)) == 3


def test_jobs_that_no_group_sees_do_not_fill_the_queue(desk: Desk):
    desk.configure(max_waiting=2)
    desk.push(1)
    desk.push(2)
    desk.ask(c.Subscribe("q", "a"))
    assert desk.push(3).status == "ready"
