"""How jobs end, stay, come back and leave; and the archive's steps."""

import pytest
from msgspec import Raw

from bucketq.errors import JobNotFound
from bucketq.queue import commands as c
from bucketq.queue import events as e
from bucketq.queue.answers import AwaitArchive
from tests.queue.desk import Desk, handle


def test_a_finished_job_leaves_once_it_is_archived(desk: Desk):
    job = desk.push(1)
    desk.complete(desk.claim_one())
    assert desk.get(job).status == "done"
    desk.archive()
    with pytest.raises(JobNotFound):
        desk.get(job)
    assert desk.stats().done == 1


def test_a_result_keeps_its_job_for_a_while(desk: Desk):
    job = desk.push(1)
    desk.complete(desk.claim_one(), result={"ok": True})
    desk.archive()
    assert desk.after(3_599).get(job).status == "done"
    desk.after(2)
    with pytest.raises(JobNotFound):
        desk.get(job)


def test_keep_finished_keeps_jobs_without_a_result(desk: Desk):
    desk.configure(keep_finished_ms=10_000)
    job = desk.push(1)
    desk.complete(desk.claim_one())
    desk.archive()
    assert desk.after(9).get(job).status == "done"
    desk.after(2)
    assert desk.state.jobs == {}


def test_dead_jobs_stay_until_their_retention_is_over(desk: Desk):
    desk.configure(retention_ms=3_600_000)
    job = desk.push(1)
    desk.fail(desk.claim_one(), dead=True)
    desk.archive()
    assert desk.after(3_000).get(job).status == "dead"
    assert desk.stats().dead == 1
    desk.after(601)
    assert desk.state.jobs == {}


def test_a_dead_job_is_retried_only_once_its_ending_is_archived(desk: Desk):
    job = desk.push(1)
    desk.fail(desk.claim_one(), dead=True)
    desk.begin()
    assert isinstance(desk.machine.decide(c.Retry("q", job.id)), AwaitArchive)
    assert desk.machine.events == []
    desk.machine.settle()
    desk.archive()
    assert desk.ask(c.Retry("q", job.id)).status == "ready"
    claim = desk.claim_one()
    assert claim.run is not None
    assert (claim.run.attempt, claim.run.token) == (1, 2)
    desk.complete(claim)
    info = desk.get(job)
    assert info.run is not None
    assert info.run.endings == 2


def test_only_the_dead_are_retried(desk: Desk):
    job = desk.push(1)
    assert desk.ask(c.Retry("q", job.id)).status == "ready"
    desk.complete(desk.claim_one(), result=1)
    with pytest.raises(JobNotFound, match="done"):
        desk.ask(c.Retry("q", job.id))


def test_cancel_ends_a_waiting_or_running_job(desk: Desk):
    waiting, running = desk.push(1), desk.push(2)
    desk.ask(c.Cancel("q", waiting.id))
    claim = desk.claim_one()
    assert claim.n == running.n
    assert desk.ask(c.Cancel("q", running.id)).status == "cancelled"
    assert desk.stats().cancelled == 2
    assert desk.ask(c.Cancel("q", running.id)).status == "cancelled"
    assert desk.stats().cancelled == 2


def test_purge_cancels_what_waits_and_drops_what_has_ended(desk: Desk):
    for number in range(3):
        desk.push(number)
    desk.fail(desk.claim_one(), dead=True)
    desk.claim_one()
    desk.push(9, delay_us=10_000_000)
    assert desk.ask(c.Purge("q", "dead")) == 1
    assert desk.ask(c.Purge("q")) == 2
    stats = desk.stats()
    assert (stats.running, stats.dead, stats.ready, stats.scheduled) == (1, 0, 0, 0)
    assert stats.cancelled == 2


def test_purge_goes_in_steps_and_leaves_later_jobs_alone(desk: Desk):
    item = c.PushItem(desk.push(0).job.payload)  # type: ignore[union-attr]
    desk.ask(c.Push("q", (item,) * 2_499))
    assert desk.ask(c.Purge("q", "ready")) == 2_500
    assert desk.stats().ready == 0


def test_sealing_takes_the_oldest_endings_first_and_numbers_have_no_gaps(desk: Desk):
    for number in range(5):
        desk.push(number)
    for claim in desk.claim(5):
        desk.complete(claim)
    segment = desk.ask(c.Seal("2027-01-15T08", endings_max=3))
    assert (segment.k, segment.first, segment.last) == (1, 1, 3)
    assert desk.ask(c.Seal("2027-01-15T09")) is None  # k+1 is not sealed before k is dropped
    desk.ask(c.Drop(1))
    assert sorted(desk.state.jobs) == [4, 5]
    segment = desk.ask(c.Seal("2027-01-15T09"))
    assert (segment.k, segment.first, segment.last) == (2, 4, 5)
    desk.ask(c.Drop(1))  # said again, it changes nothing
    desk.ask(c.Drop(2))
    assert desk.state.jobs == {}
    assert desk.stats().done == 5


def test_undo_takes_a_batch_back_whole(desk: Desk):
    desk.configure(rate_per_hour=36_000, max_running_per_key=2)
    for number in range(6):
        desk.push(number, key=f"k{number % 2}", dedup=f"d{number}")
    running = desk.claim(3)
    desk.fail(running[0], dead=True)
    before = desk.state.rows()
    desk.begin()
    for command in (
        c.Complete(handle(running[1])),
        c.Fail(handle(running[2]), "x"),
        c.Claim(("q",), 5),
        c.Purge("q", "ready"),
        c.Seal("2027-01-15T08"),
        c.Drop(1),
        c.Retry("q", running[0].id),
        c.Configure("q", {"ordered": True}),
        c.Subscribe("q", "g", 0),
        c.Pause("new"),
    ):
        desk.machine.decide(command)
    assert len(desk.machine.events) > 10
    desk.machine.rollback()
    assert desk.state.rows() == before
    desk.upkeep()
    desk.complete(running[1])


def test_the_same_events_lead_to_the_same_state(desk: Desk):
    other = Desk()
    events: list[e.Event] = []
    for number in range(4):
        desk.begin()
        item = c.PushItem(Raw(b"%d" % number), key="k")
        desk.machine.decide(c.Push("q", (item,)))
        [claim] = desk.machine.decide(c.Claim(("q",)))
        if number % 2:
            desk.machine.decide(c.Complete(handle(claim)))
        events = desk.machine.events
        other.machine.apply(events, desk.now_us, desk.mono_us)
        desk.machine.settle()
    assert desk.state.rows().jobs == other.state.rows().jobs
    assert desk.state.rows().root == other.state.rows().root
