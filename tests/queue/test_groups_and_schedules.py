"""Consumer groups, and schedules."""

import pytest
from msgspec import Raw

from bucketq.errors import JobNotFound, LeaseLost, QueueFull, SettingInvalid
from bucketq.queue import commands as c
from bucketq.queue.rows import ScheduleRow
from tests.queue.desk import Desk, handle


def test_every_group_sees_every_job_once(desk: Desk):
    for group in ("billing", "audit"):
        desk.ask(c.Subscribe("q", group))
    for number in range(3):
        desk.push(number)
    assert desk.payloads(9, group="billing") == [0, 1, 2]
    assert desk.payloads(9, group="audit") == [0, 1, 2]
    assert desk.payloads(9, group="audit") == []


def test_a_job_leaves_when_all_groups_have_ended_it(desk: Desk):
    desk.ask(c.Subscribe("q", "a"))
    desk.ask(c.Subscribe("q", "b"))
    job = desk.push(1)
    desk.complete(desk.claim_one(group="a"))
    desk.archive()
    info = desk.get(job)
    assert info.groups is not None
    assert (info.status, set(info.groups)) == ("ready", {"a", "b"})
    desk.complete(desk.claim_one(group="b"))
    desk.archive()
    with pytest.raises(JobNotFound):
        desk.get(job)


def test_on_a_queue_with_groups_a_claim_says_which(desk: Desk):
    desk.push(1)
    running = desk.claim_one()
    desk.ask(c.Subscribe("q", "a"))
    with pytest.raises(SettingInvalid, match="group"):
        desk.claim()
    with pytest.raises(SettingInvalid, match="subscribe"):
        desk.claim(group="nobody")
    desk.complete(running)  # claims of the nameless group may finish


def test_a_group_may_start_with_all_that_is_there_or_at_a_time(desk: Desk):
    desk.push("done")
    desk.complete(desk.claim_one())
    desk.push("old")
    desk.after(10)
    since_us = desk.now_us
    desk.push("new")
    desk.ask(c.Subscribe("q", "all", 0))
    desk.ask(c.Subscribe("q", "late", since_us))
    desk.ask(c.Subscribe("q", "next"))
    assert desk.payloads(9, group="all") == ["old", "new"]
    assert desk.payloads(9, group="late") == ["new"]
    assert desk.payloads(9, group="next") == []


def test_jobs_that_no_group_sees_are_not_lost(desk: Desk):
    desk.push("early")
    desk.ask(c.Subscribe("q", "a"))
    assert desk.stats().ready == 1
    assert desk.claim(9, group="a") == []
    desk.ask(c.Unsubscribe("q", "a"))
    assert desk.payloads(9) == ["early"]


def test_the_last_unsubscribe_brings_unfinished_jobs_back_and_finished_ones_not(desk: Desk):
    desk.ask(c.Subscribe("q", "a"))
    done, open_ = desk.push(1), desk.push(2)
    claims = desk.claim(2, group="a")
    desk.complete(claims[0], result=1)
    assert desk.ask(c.Unsubscribe("q", "a"))
    with pytest.raises(LeaseLost):
        desk.complete(claims[1])
    assert [job.n for job in desk.claim(9)] == [open_.n]
    assert desk.get(done).status != "ready"
    assert not desk.ask(c.Unsubscribe("q", "a"))


def test_limits_hold_for_each_group_alone(desk: Desk):
    desk.configure(max_running=1)
    desk.ask(c.Subscribe("q", "a"))
    desk.ask(c.Subscribe("q", "b"))
    desk.push(1)
    desk.push(2)
    assert len(desk.claim(9, group="a")) == 1
    assert len(desk.claim(9, group="b")) == 1


def test_a_queue_has_at_most_32_groups(desk: Desk):
    for number in range(32):
        desk.ask(c.Subscribe("q", f"g{number}"))
    with pytest.raises(QueueFull):
        desk.ask(c.Subscribe("q", "one-more"))
    assert len(desk.ask(c.ListGroups("q"))) == 32


def test_a_retry_brings_back_the_groups_in_which_the_job_died(desk: Desk):
    desk.ask(c.Subscribe("q", "a"))
    desk.ask(c.Subscribe("q", "b"))
    job = desk.push(1)
    desk.fail(desk.claim_one(group="a"), dead=True)
    desk.complete(desk.claim_one(group="b"))
    desk.ask(c.Retry("q", job.id))
    assert desk.claim(9, group="b") == []
    desk.ask(c.Complete(handle(desk.claim_one(group="a"))))


def schedule(desk: Desk, **options) -> None:
    desk.ask(c.PutSchedule(ScheduleRow("s", "q", Raw(b"1"), 0, **options)))


def test_an_interval_makes_one_job_per_tick(desk: Desk):
    schedule(desk, every_ms=60_000)
    for _ in range(10):
        desk.after(60)
    assert desk.stats().ready == 10


def test_a_cron_schedule_follows_its_time_zone(desk: Desk):
    schedule(desk, cron="30 3 * * *", timezone="Europe/Rome")
    [row] = desk.ask(c.ListSchedules())
    assert row.next_us % 86_400_000_000 == (2 * 3_600 + 1_800) * 1_000_000  # 03:30 in Rome is 02:30 UTC in January


@pytest.mark.parametrize(("catch_up", "jobs"), [("skip", 0), ("one", 1), ("all", 5)])
def test_after_downtime_missed_ticks_are_caught_up_as_asked(desk: Desk, catch_up: str, jobs: int):
    desk.now_us -= desk.now_us % 3_600_000_000
    schedule(desk, every_ms=3_600_000, catch_up=catch_up)
    desk.now_us += 5 * 3_600_000_000 + 600_000_000
    desk.upkeep()
    assert desk.stats().ready == jobs
    desk.upkeep()
    assert desk.stats().ready == jobs


def test_a_schedule_can_be_paused_replaced_and_removed(desk: Desk):
    schedule(desk, every_ms=60_000, paused=True)
    assert desk.after(300).stats().ready == 0
    schedule(desk, every_ms=30_000)
    desk.after(30)
    assert desk.stats().ready == 1
    assert desk.ask(c.RemoveSchedule("s"))
    assert not desk.ask(c.RemoveSchedule("s"))
    assert desk.after(300).stats().ready == 1


def test_a_full_queue_does_not_lose_ticks(desk: Desk):
    desk.configure(max_waiting=1)
    schedule(desk, every_ms=60_000)
    desk.after(60)
    desk.after(60)
    assert desk.stats().ready == 2


def test_an_unsubscribed_group_leaves_no_trace_in_what_is_stored(desk: Desk):
    desk.ask(c.Subscribe("q", "a"))
    desk.ask(c.Subscribe("q", "b"))
    desk.push(1)
    desk.claim(9, group="a")
    desk.ask(c.Unsubscribe("q", "a"))
    desk.ask(c.Unsubscribe("q", "b"))
    assert desk.payloads(9) == [1]


def test_a_token_never_comes_again_after_its_group_came_again(desk: Desk):
    desk.ask(c.Subscribe("q", "a"))
    desk.push(1)
    stale = desk.claim_one(group="a")
    desk.ask(c.Unsubscribe("q", "a"))
    desk.ask(c.Subscribe("q", "a", 0))
    desk.claim_one(group="a")
    with pytest.raises(LeaseLost):
        desk.complete(stale)


def test_a_token_never_comes_again_after_the_nameless_group_forgot_it(desk: Desk):
    desk.push(1)
    stale = desk.claim_one()
    desk.ask(c.Subscribe("q", "a", 0))
    desk.release(stale)
    desk.ask(c.Unsubscribe("q", "a"))
    desk.claim_one()
    with pytest.raises(LeaseLost):
        desk.complete(stale)


def test_what_a_group_has_ended_does_not_come_back_when_it_goes(desk: Desk):
    desk.ask(c.Subscribe("q", "a"))
    job = desk.push(1)
    desk.ask(c.Subscribe("q", "b"))
    desk.complete(desk.claim_one(group="a"), result=1)
    desk.archive()
    desk.ask(c.Unsubscribe("q", "a"))
    desk.ask(c.Unsubscribe("q", "b"))
    assert desk.claim(9) == []
    assert desk.state.jobs == {} or desk.get(job).status != "ready"


def test_a_job_leaves_when_the_last_claim_of_the_nameless_group_is_forgotten(desk: Desk):
    desk.push(1)
    running = desk.claim_one()
    desk.ask(c.Subscribe("q", "a", 0))
    desk.complete(desk.claim_one(group="a"))
    desk.archive()
    desk.release(running)
    desk.upkeep()
    assert desk.state.jobs == {}


def test_a_group_that_is_leaving_gives_and_takes_nothing(desk: Desk):
    desk.ask(c.Subscribe("q", "a"))
    desk.push(1)
    desk.push(2)
    claims = desk.claim(2, group="a")
    desk.complete(claims[0])
    desk.begin()
    desk.machine.decide(c.Unsubscribe("q", "a"))  # waits for the archive
    desk.machine.settle()
    with pytest.raises(LeaseLost):
        desk.complete(claims[1])
    assert desk.ask(c.Unsubscribe("q", "a"))
    assert [job.n for job in desk.claim(9)] == [2]


def test_a_schedule_that_is_declared_again_keeps_the_ticks_it_missed(desk: Desk):
    schedule(desk, every_ms=3_600_000)
    desk.now_us += 3 * 3_600_000_000
    schedule(desk, every_ms=3_600_000)
    desk.upkeep()
    assert desk.stats().ready == 1


def test_a_schedule_whose_zone_this_machine_lacks_is_left_to_others(desk: Desk):
    desk.ask(c.PutSchedule(ScheduleRow("bad", "q", Raw(b"1"), desk.now_us + 1, cron="* * * * *", timezone="No/Where")))
    schedule(desk, every_ms=60_000)
    desk.after(60)
    assert desk.stats().ready == 1
    assert desk.ask(c.RemoveSchedule("bad"))
