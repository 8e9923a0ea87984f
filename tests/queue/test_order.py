"""Which job comes next."""

from bucketq.queue import commands as c
from tests.queue.desk import Desk, handle


def test_jobs_come_in_the_order_of_admission(desk: Desk):
    for payload in range(5):
        desk.push(payload)
    assert desk.payloads(5) == [0, 1, 2, 3, 4]


def test_a_lower_priority_number_comes_first(desk: Desk):
    for payload, priority in enumerate([3, 0, -1, 2**53, -(2**53), 0]):
        desk.push(payload, priority=priority)
    assert desk.payloads(6) == [4, 2, 1, 5, 0, 3]


def test_keys_take_turns_however_many_jobs_one_of_them_has(desk: Desk):
    for number in range(50):
        desk.push(f"big-{number}", key="big")
    desk.push("small-0", key="small")
    desk.push("none-0")
    assert set(desk.payloads(3)) == {"big-0", "small-0", "none-0"}


def test_keys_take_turns_only_within_a_priority(desk: Desk):
    desk.push("a0", key="a", priority=1)
    desk.push("b0", key="b", priority=0)
    desk.push("b1", key="b", priority=0)
    desk.push("b2", key="b", priority=1)
    assert desk.payloads(2) == ["b0", "b1"]
    assert set(desk.payloads(2)) == {"a0", "b2"}


def test_a_claim_may_ask_for_a_key(desk: Desk):
    desk.push(1, key="a")
    desk.push(2, key="b")
    assert desk.payloads(5, key="b") == [2]
    assert desk.payloads(5, key="c") == []


def test_a_released_job_keeps_its_place(desk: Desk):
    desk.push(1)
    desk.push(2)
    desk.release(desk.claim_one())
    assert desk.payloads(2) == [1, 2]


def test_several_queues_are_asked_in_the_order_given(desk: Desk):
    desk.push("b", queue="b")
    desk.push("a", queue="a")
    found = desk.ask(c.Claim(("a", "b", "nowhere"), 5))
    assert [job.queue for job in found] == ["a", "b"]


def test_any_queue_means_going_round_them(desk: Desk):
    for number in range(3):
        desk.push(number, queue="a")
    desk.push(9, queue="b")
    found = desk.ask(c.Claim(None, 2))
    assert {job.queue for job in found} == {"a", "b"}
    assert [job.queue for job in desk.ask(c.Claim(None, 5))] == ["a", "a"]


def test_a_delayed_job_is_not_handed_out_before_its_time(desk: Desk):
    job = desk.push(1, delay_us=10_000_000)
    assert job.status == "scheduled"
    assert desk.claim() == []
    assert desk.after(9.9).claim() == []
    assert desk.after(0.1).payloads() == [1]


def test_a_delayed_job_takes_the_place_of_its_admission(desk: Desk):
    desk.push(1, delay_us=1_000_000)
    desk.push(2)
    desk.after(2)
    assert desk.payloads(2) == [1, 2]


def test_an_ordered_key_runs_one_job_at_a_time_in_order(desk: Desk):
    desk.configure(ordered=True)
    for number in range(3):
        desk.push(f"a{number}", key="a", priority=-number)
    desk.push("b0", key="b")
    first = desk.claim(9)
    assert {job.n for job in first} == {1, 4}
    desk.complete(next(job for job in first if job.n == 1))
    assert desk.payloads(9) == ["a1"]


def test_an_ordered_queue_without_keys_is_first_in_first_out(desk: Desk):
    desk.configure(ordered=True)
    desk.push(1)
    desk.push(2)
    job = desk.claim_one()
    assert desk.claim(5) == []
    desk.fail(job, retry_in_us=5_000_000)
    assert desk.claim(5) == []  # backing off, it holds the line
    assert desk.after(5).payloads(5) == [1]


def test_a_scheduled_head_holds_its_ordered_key(desk: Desk):
    desk.configure(ordered=True)
    desk.push(1, key="a", delay_us=5_000_000)
    desk.push(2, key="a")
    assert desk.claim(5) == []
    assert desk.after(5).payloads(5) == [1]


def test_a_dead_job_frees_its_ordered_key_and_a_retry_goes_to_the_end(desk: Desk):
    desk.configure(ordered=True)
    dead = desk.push(1, key="a")
    desk.push(2, key="a")
    desk.fail(desk.claim_one(), dead=True)
    desk.push(3, key="a")
    desk.ask(c.Retry("q", dead.id))
    order = []
    while found := desk.claim():
        order.append(found[0].n)
        desk.complete(found[0])
    assert order == [2, 3, dead.n]


def test_a_queue_can_become_ordered_while_jobs_wait(desk: Desk):
    for number in range(4):
        desk.push(number, key="a")
    running = desk.claim_one()
    desk.configure(ordered=True)
    assert desk.claim(5) == []
    desk.complete(running)
    assert desk.payloads(5) == [1]
    desk.configure(ordered=False)
    assert desk.payloads(5) == [2, 3]


def test_jobs_past_their_time_to_live_are_never_handed_out(desk: Desk):
    job = desk.push(1, ttl_us=5_000_000)
    desk.now_us += 6_000_000
    assert desk.claim() == []
    assert desk.get(job).status == "expired"


def test_a_running_job_outlives_its_ttl_but_does_not_come_back(desk: Desk):
    desk.push(1, ttl_us=5_000_000)
    job = desk.claim_one()
    desk.after(10)
    assert desk.get(job).status == "running"
    desk.ask(c.Release(handle(job)))
    assert desk.get(job).status == "expired"


def test_jobs_without_a_key_take_turns_too_where_keys_are_limited(desk: Desk):
    desk.configure(max_running_per_key=1)
    desk.push("n0")
    desk.push("x0", key="x")
    desk.push("n1")
    assert desk.payloads(3) == ["n0", "x0", "n1"]
