"""The blocking twin."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

import bucketq
from bucketq.client import thread as thread_module
from bucketq.client.queue import Queue
from bucketq.client.thread import LoopThread
from bucketq.errors import BucketqError, LeaseLost, PayloadInvalid, SettingInvalid
from bucketq.queue import commands as c
from bucketq.testing import Clock
from tests.client.machine_port import Tap


@dataclass
class Email:
    to: str


@pytest.fixture
def client(clock: Clock) -> Iterator[bucketq.SyncClient]:
    with bucketq.connect_sync(bucketq.MemoryStore(clock), clock=clock) as client:
        yield client


@pytest.fixture
def mail(client: bucketq.SyncClient) -> bucketq.SyncQueue[Any]:
    mail = client.queue("mail")
    mail.configure(lease=30, backoff=0, keep_finished=3_600)
    return mail


def advance(client: bucketq.SyncClient, clock: Clock, seconds: float) -> None:
    client._thread.run(lambda: clock.advance(seconds))


def test_the_twin_has_every_verb():
    for own, twin in [
        (bucketq.Queue, bucketq.SyncQueue),
        (bucketq.Client, bucketq.SyncClient),
        (bucketq.Claim, bucketq.SyncClaim),
    ]:
        public = {name for name in dir(own) if not name.startswith("_")} - {"name"}
        assert public - set(dir(twin)) == set()
    for name in ("claim", "claims", "complete_many"):
        own_names = list(inspect.signature(getattr(bucketq.Queue, name)).parameters)
        assert own_names == list(inspect.signature(getattr(bucketq.SyncQueue, name)).parameters)
    assert vars(bucketq.SyncQueue)["push"].__doc__ == Queue.push.__doc__


def test_a_job_goes_from_push_to_done(client, mail):
    job = mail.push({"a": 1}, key="k")
    assert client.queues() == ["mail"]
    (claim,) = mail.claim(lease=60)
    assert (claim.job.id, claim.payload, claim.token, claim.lease, claim.lost) == (job.id, {"a": 1}, 1, 60.0, False)
    claim.heartbeat(progress=1)
    claim.complete(result=2)
    assert mail.get(job.id).result == 2
    with pytest.raises(LeaseLost):
        claim.release()


def test_typed_queues_many_and_transactions(client, mail):
    typed = client.queue("typed", Email)
    typed.push_many([Email("a"), bucketq.Push(Email("b"), priority=-1)])
    with pytest.raises(PayloadInvalid):
        typed.push("x")
    claims = typed.claim(n=2)
    assert [claim.payload for claim in claims] == [Email("b"), Email("a")]
    answers = client.transact([bucketq.Complete(claims[0]), bucketq.PushTo(typed, Email("c"))])
    assert answers[1].payload == Email("c")
    assert typed.complete_many(claims)[1] is None
    (claim,) = client.claim(["mail", "typed"])
    assert claim.payload == {"to": "c"}
    client.upkeep()


def test_with_completes_fails_and_releases(mail):
    for index in range(3):
        mail.push(index)
    done, failed, released = mail.claim(n=3)
    with done:
        done.set_result("r")
    with pytest.raises(ValueError, match="no"), failed:
        raise ValueError("no")
    with pytest.raises(KeyboardInterrupt), released:
        raise KeyboardInterrupt
    assert mail.get(done.job.id).result == "r"
    assert mail.get(failed.job.id).error == "ValueError: no"
    assert mail.get(released.job.id).attempt == 0


def test_with_beats_while_the_body_blocks(client, mail, clock):
    mail.push(1)
    (claim,) = mail.claim()
    with claim:
        advance(client, clock, 200)
        assert not claim.lost
    assert mail.get(claim.job.id).status == "done"


def test_a_lost_lease_shows_inside_and_is_raised_at_the_end(client, mail, clock):
    mail.push(1)
    (claim,) = mail.claim()

    def work() -> None:
        with claim:
            mail.cancel(claim.job.id)
            assert not claim.lost
            advance(client, clock, 10)
            assert claim.lost

    with pytest.raises(LeaseLost):
        work()


def test_claims_come_in_a_loop_and_the_rest_is_released(mail):
    mail.push_many([1, 2, 3])
    for claim in mail.claims(n=3):
        with claim:
            assert claim.payload == 1
        break
    stats = mail.stats()
    assert (stats.done, stats.running, stats.ready) == (1, 0, 2)
    with pytest.raises(SettingInvalid):
        mail.claims(n=0)


def test_eight_threads_share_a_client():
    with bucketq.connect_sync("memory://") as client, ThreadPoolExecutor(8) as pool:
        mail = client.queue("mail", int)
        barrier = threading.Barrier(8)

        def push_and_work(thread: int) -> list[int]:
            barrier.wait()
            for index in range(25):
                mail.push(thread * 100 + index)
            barrier.wait()
            seen = []
            while claims := mail.claim(n=3):
                for claim in claims:
                    with claim:
                        seen.append(claim.payload)
            return seen

        seen = [payload for each in pool.map(push_and_work, range(8)) for payload in each]
        assert sorted(seen) == [thread * 100 + index for thread in range(8) for index in range(25)]
        assert mail.stats().done == 200


def test_a_waiting_claim_of_one_thread_gets_the_push_of_another():
    with bucketq.connect_sync("memory://") as client, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.queue("mail").claim, wait=10)
        job = client.queue("mail").push(1)
        (claim,) = waiting.result()
        assert claim.job.id == job.id


def wait_in_claim(mail: bucketq.SyncQueue[Any]) -> None:
    mail.claim(wait=600)


def wait_in_loop(mail: bucketq.SyncQueue[Any]) -> None:
    for _ in mail.claims():
        pytest.fail("there is nothing to claim")


@pytest.mark.parametrize("wait", [wait_in_claim, wait_in_loop])
def test_an_interrupted_caller_cancels_its_claim(client, mail, wait):
    tap = Tap(client._inner._session.port)
    client._inner._session.port = tap

    def interrupt(command: c.Command) -> None:
        if isinstance(command, c.Claim):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    tap.notice = interrupt
    with pytest.raises(KeyboardInterrupt):
        wait(mail)
    tap.notice = lambda command: None
    mail.push(1)
    (claim,) = mail.claim()
    assert (claim.token, claim.job.attempt) == (1, 1)


def interrupt_wait(monkeypatch: pytest.MonkeyPatch, before: Callable[[thread_module._Call[Any]], object]) -> None:
    """The next caller that waits is interrupted, after `before`."""

    def wait(call: thread_module._Call[Any]) -> None:
        monkeypatch.undo()
        before(call)
        raise KeyboardInterrupt

    monkeypatch.setattr(thread_module._Call, "wait", wait)


def test_a_claim_that_comes_in_the_moment_of_the_interruption_is_given_back(client, mail, clock, monkeypatch):
    mail.push(1)
    interrupt_wait(monkeypatch, thread_module._Call.wait)
    with pytest.raises(KeyboardInterrupt):
        mail.claim()
    advance(client, clock, 0)
    assert mail.stats().running == 0


def test_a_result_that_comes_in_spite_of_the_interruption_is_undone(monkeypatch):
    thread = LoopThread()
    began = threading.Event()
    undone: list[str] = []

    async def stubborn() -> str:
        began.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(600)
        return "result"

    async def undo(result: str) -> None:
        undone.append(result)

    interrupt_wait(monkeypatch, lambda call: began.wait())
    with pytest.raises(KeyboardInterrupt):
        thread.run(stubborn, undo)
    thread.stop()
    assert undone == ["result"]


# an interruption inside a weak reference's callback is lost by Python itself, which warns
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interruption_at_any_moment_leaves_nothing_locked_and_nothing_running(client, mail):
    """An alarm goes off at a random moment of a call, many times over."""
    mail.push(1)
    random = Random(7)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(200):
            with suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.000_01, 0.002))
                for _ in range(20):
                    for claim in mail.claim():
                        claim.release()
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    # an interruption between the answer and the release leaves the claim to its lease
    assert len(mail.claim(n=2)) <= 1
    mail.push(2)
    assert mail.claim()


def test_a_closed_client_refuses_and_closes_twice(client, mail):
    client.close()
    client.close()
    for call in (lambda: mail.push(1), mail.claim, client.queues, lambda: next(mail.claims())):
        with pytest.raises(BucketqError, match="closed"):
            call()


def test_closing_answers_the_callers_of_other_threads():
    client = bucketq.connect_sync("memory://")
    tap = Tap(client._inner._session.port)
    client._inner._session.port = tap
    reached = threading.Event()
    tap.notice = lambda command: reached.set()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.queue("mail").claim, wait=600)
        reached.wait()
        client.close()
        error = waiting.exception()
        assert error is None or "closed" in str(error)


def test_a_call_inside_the_clients_own_thread_is_refused(client, mail):
    async def wrong() -> None:
        mail.push(1)

    with pytest.raises(BucketqError, match="would wait for itself"):
        client._thread.run(wrong)


def test_a_client_that_cannot_be_opened_leaves_no_thread_behind():
    before = threading.active_count()
    with pytest.raises(bucketq.BrokerUnavailable):
        bucketq.connect_sync("memory://", mode="broker")
    assert threading.active_count() == before


FORK = """
import os, sys, warnings, bucketq
warnings.simplefilter("ignore")
client = bucketq.connect_sync("memory://")
child = os.fork()
if child == 0:
    try:
        client.queue("mail").push(1)
    except bucketq.BucketqError as error:
        os._exit(0 if "before a fork" in str(error) else 1)
    os._exit(2)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
client.close()
sys.exit(status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_client_opened_before_a_fork_says_so_in_the_child():
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=60)


def test_a_process_that_does_not_close_its_client_ends():
    code = "import bucketq; bucketq.connect_sync('memory://').queue('mail').push(1)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_script_that_forgets_to_close_ends_in_peace(tmp_path):
    script = f"import bucketq; bucketq.connect_sync({tmp_path.as_uri()!r}).queue('n').push(1)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
