"""What the holder of a claim may do, and who is refused."""

import pytest
from msgspec import Raw

from bucketq.errors import JobNotFound, LeaseLost
from bucketq.queue import commands as c
from tests.queue.desk import Desk, handle


def test_a_job_goes_from_ready_to_running_to_done(desk: Desk):
    job = desk.push({"to": "ann"})
    assert desk.get(job).status == "ready"
    claim = desk.claim_one(worker="w1")
    assert claim.run is not None
    assert (claim.status, claim.run.token, claim.run.attempt, claim.run.worker) == ("running", 1, 1, "w1")
    desk.complete(claim)
    assert desk.get(job).status == "done"
    assert desk.stats().done == 1


@pytest.mark.parametrize("verb", [c.Complete, c.Release, c.Heartbeat, lambda claim: c.Fail(claim, "late")])
def test_a_token_that_is_not_current_is_refused(desk: Desk, verb):
    desk.push(1)
    stale = desk.claim_one()
    desk.release(stale)
    current = desk.claim_one()
    with pytest.raises(LeaseLost):
        desk.ask(verb(handle(stale)))
    desk.complete(current)
    with pytest.raises(LeaseLost):
        desk.ask(verb(handle(current)))


@pytest.mark.parametrize("job_id", ["t-99", "x-1", "t-1x", "", "t-01", "t-1-1", "t-²"])
def test_a_claim_on_a_job_that_never_was_is_refused(desk: Desk, job_id: str):
    desk.push(1)
    desk.claim_one()
    with pytest.raises(LeaseLost):
        desk.ask(c.Complete(c.Handle("q", job_id, 1)))
    with pytest.raises(JobNotFound):
        desk.ask(c.Get("q", job_id))


def test_a_job_is_found_only_in_its_own_queue(desk: Desk):
    job = desk.push(1)
    desk.push(2, queue="other")
    with pytest.raises(JobNotFound):
        desk.ask(c.Get("other", job.id))


def test_a_lease_that_is_not_renewed_ends_and_counts_an_attempt(desk: Desk):
    desk.push(1)
    stale = desk.claim_one(lease_ms=5_000)
    desk.after(6)
    claim = desk.claim_one()
    assert claim.run is not None
    assert (claim.run.attempt, claim.run.token) == (2, 2)
    assert claim.run.history[0].outcome == "lost"
    with pytest.raises(LeaseLost):
        desk.complete(stale)


def test_a_heartbeat_keeps_the_lease(desk: Desk):
    desk.push(1)
    claim = desk.claim_one(lease_ms=5_000)
    for _ in range(5):
        desk.after(4)
        desk.ask(c.Heartbeat(handle(claim)))
    desk.complete(claim)


def test_in_a_batch_a_heartbeat_comes_before_the_expiry(desk: Desk):
    desk.push(1)
    claim = desk.claim_one(lease_ms=5_000)
    desk.now_us += 5_500_000
    desk.mono_us += 5_500_000
    desk.begin()
    desk.machine.decide(c.Heartbeat(handle(claim)))
    desk.machine.decide_due()
    desk.machine.settle()
    assert desk.get(claim).status == "running"


def test_whoever_was_not_looking_gives_every_lease_its_full_length_again(desk: Desk):
    desk.push(1)
    claim = desk.claim_one(lease_ms=5_000)
    desk.mono_us += 60_000_000
    desk.upkeep()
    assert desk.get(claim).status == "running"
    desk.after(6)
    assert desk.get(claim).status == "ready"


def test_a_job_that_fails_backs_off_at_random_within_growing_bounds(desk: Desk):
    desk.configure(max_attempts=8)
    desk.push(1)
    for attempt in range(1, 8):
        info = desk.fail(desk.claim_one())
        assert info.run is not None
        assert desk.now_us <= info.run.run_us <= desk.now_us + 1_000_000 * 2 ** (attempt - 1)
        desk.after(130)
    assert desk.fail(desk.claim_one()).status == "dead"


def test_after_max_attempts_a_job_is_dead_whether_it_failed_or_was_lost(desk: Desk):
    desk.configure(max_attempts=2)
    job = desk.push(1)
    desk.fail(desk.claim_one(), retry_in_us=0)
    desk.claim_one(lease_ms=1_000)
    desk.after(2)
    info = desk.get(job)
    assert info.run is not None
    assert (info.status, info.run.attempt) == ("dead", 2)
    assert [attempt.outcome for attempt in info.run.history] == ["failed", "lost"]


def test_a_job_may_have_its_own_number_of_attempts(desk: Desk):
    desk.push(1, max_attempts=1)
    assert desk.fail(desk.claim_one()).status == "dead"


def test_a_release_counts_nothing(desk: Desk):
    desk.push(1, max_attempts=1)
    for _ in range(5):
        desk.release(desk.claim_one())
    claim = desk.claim_one()
    assert claim.run is not None
    assert claim.run.attempt == 1
    assert [attempt.outcome for attempt in claim.run.history] == ["released"] * 5


def test_history_keeps_the_last_twenty_attempts(desk: Desk):
    job = desk.push(1)
    for _ in range(30):
        desk.release(desk.claim_one())
    info = desk.get(job)
    assert info.run is not None
    assert len(info.run.history) == 20


def test_a_claim_that_completes_at_once_needs_no_completion(desk: Desk):
    desk.push(1)
    claim = desk.claim_one(auto_complete=True)
    assert claim.status == "done"
    assert desk.stats().done == 1


def test_each_of_many_completions_stands_alone(desk: Desk):
    for number in range(3):
        desk.push(number)
    claims = desk.claim(3)
    desk.release(claims[1])
    answers = desk.ask(c.CompleteMany(tuple(c.Complete(handle(claim)) for claim in claims)))
    assert [type(answer) for answer in answers] == [type(None), LeaseLost, type(None)]


def test_a_transaction_is_all_or_nothing(desk: Desk):
    desk.push(1)
    desk.push(2)
    first, second = desk.claim(2)
    desk.release(second)
    item = c.PushItem(first.job.payload) if first.job is not None else None
    assert item is not None
    parts = (c.Complete(handle(first)), c.Push("next", (item,)), c.Complete(handle(second)))
    before = desk.state.rows()
    with pytest.raises(LeaseLost):
        desk.ask(c.Transact(parts))
    assert desk.state.rows() == before
    desk.ask(c.Transact(parts[:2]))
    assert desk.stats().done == 1
    assert desk.stats("next").ready == 1


def test_progress_is_kept_until_it_is_replaced(desk: Desk):
    desk.push(1)
    claim = desk.claim_one()
    desk.ask(c.Heartbeat(handle(claim), Raw(b"0.5")))
    desk.ask(c.Heartbeat(handle(claim)))
    info = desk.get(claim)
    assert info.run is not None
    assert info.run.progress is not None
    assert bytes(info.run.progress) == b"0.5"


def test_every_running_lease_is_watched_however_many_ended_before(desk: Desk):
    item = c.PushItem(Raw(b"1"))
    for _ in range(11):
        desk.ask(c.Push("q", (item,) * 1_000))
        desk.begin()
        for claim in desk.machine.decide(c.Claim(("q",), 1_000)):
            desk.machine.decide(c.Complete(handle(claim)))
        desk.machine.settle()
        desk.ask(c.Seal("2027-01-15T08"))
        desk.ask(c.Drop(desk.state.next_k - 1))
    job = desk.push(1)
    for _ in range(5):
        desk.claim(1, lease_ms=5_000)
        desk.after(6)
        assert desk.get(job).status in ("ready", "dead")


def test_a_change_of_settings_keeps_the_watch_over_leases(desk: Desk):
    job = desk.push(1)
    desk.claim(1, lease_ms=5_000)
    desk.after(4)
    desk.configure(ordered=True)
    desk.after(1.5)
    assert desk.get(job).status == "ready"


def test_thousands_of_leases_that_are_over_all_end(desk: Desk):
    item = c.PushItem(Raw(b"1"))
    desk.ask(c.Push("q", (item,) * 4_000))
    desk.ask(c.Claim(("q",), 4_000, 5_000))
    desk.mono_us += 5_500_000
    for _ in range(4):
        desk.mono_us += 1_000_000
        desk.upkeep()
    assert desk.stats().running == 0


def test_taking_back_the_end_of_a_lease_does_not_prolong_it(desk: Desk):
    job = desk.push(1)
    desk.claim(1, lease_ms=5_000)
    desk.mono_us += 5_500_000
    desk.begin()
    desk.machine.decide_due()
    assert desk.machine.events
    desk.machine.rollback()
    desk.upkeep()
    assert desk.get(job).status == "ready"


def test_a_place_that_was_taken_back_is_nobodys(desk: Desk):
    dead = desk.push(1)
    desk.fail(desk.claim_one(), dead=True)
    desk.archive()
    desk.begin()
    desk.machine.decide(c.Retry("q", dead.id))
    desk.machine.rollback()
    fresh = desk.push(2)
    assert desk.claim_one().n == fresh.n


def test_a_rollback_with_no_batch_open_changes_nothing(desk: Desk):
    desk.push(1)
    before = desk.state.rows()
    desk.machine.rollback()
    assert desk.state.rows() == before
