from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from bucketq.clock import SECOND_US
from bucketq.errors import BucketqError, Conflict, OutcomeUnknown, StoreError, StoreStopped
from bucketq.store.base import Store
from bucketq.testing import Call, Clock, Crash, Fault, FaultyStore, MemoryStore


@pytest.fixture
def inner() -> MemoryStore:
    return MemoryStore(Clock())


@pytest.fixture
def faulty(inner: MemoryStore) -> FaultyStore:
    return FaultyStore(inner)


async def content(store: Store, key: str) -> bytes | None:
    found = await store.get(key)
    return found.data if found else None


async def keys(store: Store, prefix: str = "") -> list[str]:
    return [key async for key in store.list(prefix)]


class TestWithoutFaults:
    async def test_it_is_the_store_inside(self, inner, faulty):
        assert isinstance(faulty, Store)
        first = await faulty.create("log/1", b"one")
        second = await faulty.replace("log/1", b"uno", first)
        assert await faulty.get("log/1") == await inner.get("log/1")
        assert (await inner.get("log/1")).version == second
        assert await keys(faulty, "log/") == ["log/1"]
        assert [key async for key in faulty.list("log/", after="log/1")] == []
        with pytest.raises(Conflict):
            await faulty.create("log/1", b"again")
        await faulty.delete("log/1")
        assert await keys(inner) == []

    async def test_every_request_is_counted_and_logged(self, faulty):
        await faulty.create("a", b"12345")
        with pytest.raises(Conflict):
            await faulty.replace("a", b"1", "stale")
        await faulty.get("a")
        await keys(faulty, "x/")
        await faulty.delete("a")
        assert faulty.calls == Counter(create=1, replace=1, get=1, list=1, delete=1)
        assert faulty.log == [
            Call("create", "a", 5, outcome="ok", stored="ok"),
            Call("replace", "a", 1, outcome="conflict", stored="conflict"),
            Call("get", "a", 0, outcome="ok", stored="ok"),
            Call("list", "x/", 0, outcome="ok", stored="ok"),
            Call("delete", "a", 0, outcome="ok", stored="ok"),
        ]
        assert not faulty.fired

    async def test_waiting_for_a_change_is_passed_on_and_costs_nothing(self, inner, faulty):
        faulty.next("any", Fault.REQUEST_LOST)
        waiting = asyncio.create_task(faulty.changed())
        await asyncio.sleep(0)
        await inner.create("a", b"1")
        await waiting
        assert not faulty.calls
        await faulty.close()


class TestReplyLost:
    async def test_the_write_is_done_and_the_caller_does_not_know(self, inner, faulty):
        version = await inner.create("queue.json", b"old")
        faulty.next("replace", Fault.REPLY_LOST, key="queue.json")
        with pytest.raises(OutcomeUnknown):
            await faulty.replace("queue.json", b"new", version)
        assert await content(inner, "queue.json") == b"new"
        assert faulty.log[-1].stored == "ok"
        assert faulty.log[-1].outcome == "unknown"

    async def test_a_lost_conflict_is_unknown_too(self, inner, faulty):
        await inner.create("a", b"theirs")
        faulty.next("create", Fault.REPLY_LOST)
        with pytest.raises(OutcomeUnknown):
            await faulty.create("a", b"ours")
        assert await content(inner, "a") == b"theirs"
        assert faulty.log[-1].stored == "conflict"

    async def test_reads_and_deletes_get_a_store_error(self, inner, faulty):
        await inner.create("a", b"1")
        faulty.next("any", Fault.REPLY_LOST, times=3)
        for request in (faulty.get("a"), keys(faulty), faulty.delete("a")):
            with pytest.raises(StoreError):
                await request
        assert await keys(inner) == []


class TestRequestLost:
    async def test_nothing_is_written_and_the_caller_does_not_know(self, inner, faulty):
        faulty.next("create", Fault.REQUEST_LOST)
        with pytest.raises(OutcomeUnknown):
            await faulty.create("a", b"1")
        assert await keys(inner) == []
        assert faulty.log[-1].stored is None
        await faulty.create("a", b"1")


class TestLate:
    async def test_the_write_lands_when_the_test_says_so(self, inner, faulty):
        faulty.next("create", Fault.LATE)
        with pytest.raises(OutcomeUnknown):
            await faulty.create("log/1", b"stalled")
        assert await keys(inner) == []
        assert faulty.late == 1
        assert await faulty.deliver_late() == 1
        assert await content(inner, "log/1") == b"stalled"
        assert faulty.log[0].stored == "ok"
        assert await faulty.deliver_late() == 0

    async def test_it_may_land_behind_a_later_write_and_lose(self, inner, faulty):
        faulty.next("create", Fault.LATE)
        with pytest.raises(OutcomeUnknown):
            await faulty.create("log/1", b"stalled")
        await faulty.create("log/1", b"sent again")
        await faulty.deliver_late()
        assert await content(inner, "log/1") == b"sent again"
        assert faulty.log[0].stored == "conflict"

    async def test_it_may_bring_a_deleted_object_back(self, inner, faulty):
        faulty.next("create", Fault.LATE)
        with pytest.raises(OutcomeUnknown):
            await faulty.create("log/1", b"slot")
        await faulty.create("log/1", b"slot")
        await faulty.delete("log/1")
        await faulty.deliver_late()
        assert await content(inner, "log/1") == b"slot"

    async def test_it_lands_by_itself_before_the_kth_later_request(self, faulty):
        faulty.next("create", Fault.LATE, late_after=2)
        with pytest.raises(OutcomeUnknown):
            await faulty.create("a", b"1")
        assert await faulty.get("a") is None
        assert await content(faulty, "a") == b"1"

    async def test_it_outlives_the_process_that_sent_it(self, inner, faulty):
        faulty.next("create", Fault.LATE)
        with pytest.raises(OutcomeUnknown):
            await faulty.create("a", b"1")
        faulty.crash()
        await faulty.deliver_late()
        assert await content(inner, "a") == b"1"

    async def test_a_delete_can_be_late_and_a_read_is_only_lost(self, inner, faulty):
        await inner.create("a", b"1")
        faulty.next("any", Fault.LATE, times=2)
        for request in (faulty.delete("a"), faulty.get("a")):
            with pytest.raises(StoreError):
                await request
        assert await keys(inner) == ["a"]
        assert await faulty.deliver_late() == 1
        assert await keys(inner) == []


class TestDuplicated:
    async def test_a_write_that_was_done_gives_a_false_conflict(self, inner, faulty):
        faulty.next("write", Fault.DUPLICATED, times=2)
        with pytest.raises(Conflict):
            await faulty.create("a", b"1")
        assert await content(inner, "a") == b"1"
        with pytest.raises(Conflict):
            await faulty.replace("a", b"2", (await inner.get("a")).version)
        assert await content(inner, "a") == b"2"
        assert [(call.stored, call.outcome) for call in faulty.log] == [("ok", "conflict")] * 2

    async def test_reads_and_deletes_do_not_notice(self, inner, faulty):
        await inner.create("a", b"1")
        faulty.next("any", Fault.DUPLICATED, times=3)
        assert await content(faulty, "a") == b"1"
        assert await keys(faulty) == ["a"]
        await faulty.delete("a")
        assert await keys(inner) == []


class TestError:
    @pytest.mark.parametrize("kind", ["disk_full", "read_only", "throttled", "stopped"])
    async def test_nothing_is_written_and_the_caller_knows(self, inner, faulty, kind):
        faulty.next("write", Fault.ERROR, error=kind)
        with pytest.raises(StoreError) as caught:
            await faulty.create("a", b"1")
        assert isinstance(caught.value.cause, OSError)
        assert isinstance(caught.value, StoreStopped) == (kind == "stopped")
        assert await keys(inner) == []

    async def test_a_burst_ends(self, faulty):
        faulty.next("create", Fault.ERROR, times=3)
        for _ in range(3):
            with pytest.raises(StoreError):
                await faulty.create("a", b"1")
        await faulty.create("a", b"1")
        assert faulty.fired == Counter({Fault.ERROR: 3})


class TestUnavailable:
    async def test_reads_fail_writes_are_unknown_and_nothing_is_applied(self, inner, faulty):
        await inner.create("a", b"1")
        faulty.next("any", Fault.UNAVAILABLE, times=4)
        for request, error in (
            (faulty.get("a"), StoreError),
            (keys(faulty), StoreError),
            (faulty.delete("a"), StoreError),
            (faulty.create("b", b"1"), OutcomeUnknown),
        ):
            with pytest.raises(error):
                await request
        assert await keys(inner) == ["a"]
        assert await keys(faulty) == ["a"]


class TestSlow:
    async def test_a_request_held_before_is_not_yet_applied(self, inner, faulty):
        held = faulty.hold("write")
        writing = asyncio.create_task(faulty.create("a", b"1"))
        call = await held.arrived()
        assert (call.verb, call.key, call.outcome) == ("create", "a", None)
        assert await keys(inner) == []
        held.release()
        await writing
        assert await keys(inner) == ["a"]
        assert faulty.fired == Counter({Fault.SLOW: 1})

    async def test_a_request_held_after_is_applied_and_not_yet_answered(self, inner, faulty):
        held = faulty.hold("create", when="after")
        writing = asyncio.create_task(faulty.create("a", b"1"))
        await held.arrived()
        assert await content(inner, "a") == b"1"
        assert not writing.done()
        held.release()
        await writing

    async def test_only_the_request_that_is_meant_is_held(self, inner, faulty):
        held = faulty.hold("create", key="log/*", skip=1)
        await faulty.create("queue.json", b"1")
        await faulty.create("log/1", b"1")
        writing = asyncio.create_task(faulty.create("log/2", b"1"))
        await held.arrived()
        await faulty.create("log/3", b"1")
        held.release()
        await writing
        assert await keys(inner, "log/") == ["log/1", "log/2", "log/3"]

    async def test_a_held_request_can_meet_a_fault_as_well(self, inner, faulty):
        held = faulty.hold("create", when="after")
        faulty.next("create", Fault.REPLY_LOST)
        writing = asyncio.create_task(faulty.create("a", b"1"))
        await held.arrived()
        assert not writing.done()
        held.release()
        with pytest.raises(OutcomeUnknown):
            await writing
        assert await keys(inner) == ["a"]

    async def test_a_conflict_is_held_too(self, inner, faulty):
        await inner.create("a", b"1")
        held = faulty.hold("create", when="after")
        writing = asyncio.create_task(faulty.create("a", b"2"))
        assert (await held.arrived()).stored == "conflict"
        held.release()
        with pytest.raises(Conflict):
            await writing

    async def test_a_cancelled_caller_leaves_a_line_in_the_log(self, inner, faulty):
        held = faulty.hold("create")
        writing = asyncio.create_task(faulty.create("a", b"1"))
        await held.arrived()
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert faulty.log[0].outcome == "cancelled"
        assert await keys(inner) == []

    @pytest.mark.parametrize("when", ["before", "after"])
    async def test_on_a_clock_it_takes_that_long(self, inner, when):
        clock = Clock()
        faulty = FaultyStore(inner, clock=clock)
        faulty.next("create", Fault.SLOW, slow_s=40, when=when, times=2)
        start_us = clock.mono_us()
        writing = asyncio.create_task(faulty.create("a", b"1"))
        await clock.advance(39)
        assert (await keys(inner) == ["a"]) == (when == "after")
        assert not writing.done()
        await clock.run(writing)
        assert clock.mono_us() == start_us + 40 * SECOND_US
        with pytest.raises(Conflict):
            await clock.run(faulty.create("a", b"2"))
        assert clock.mono_us() == start_us + 80 * SECOND_US

    async def test_without_a_clock_others_overtake(self, faulty):
        faulty.next("create", Fault.SLOW, slow_s=10)
        slow = asyncio.create_task(faulty.create("a", b"slow"))
        await asyncio.sleep(0)
        await faulty.create("a", b"quick")
        with pytest.raises(Conflict):
            await slow


class TestCrash:
    def test_it_is_no_error_of_bucketq(self):
        assert issubclass(Crash, Exception)
        assert not issubclass(Crash, BucketqError)

    @pytest.mark.parametrize(("when", "survived"), [("before", ["a"]), ("after", ["a", "b"])])
    async def test_at_the_nth_request_the_process_dies_and_the_store_lives_on(self, inner, faulty, when, survived):
        faulty.crash_at(2, when)
        await faulty.create("a", b"1")
        with pytest.raises(Crash):
            await faulty.create("b", b"1")
        assert faulty.crashed
        for request in (faulty.get("a"), faulty.create("c", b"1"), keys(faulty), faulty.delete("a"), faulty.changed()):
            with pytest.raises(Crash):
                await request
        await faulty.close()
        assert await keys(inner) == survived
        assert faulty.calls.total() == 2
        assert [call.outcome for call in faulty.log] == ["ok", "crash"]

    async def test_every_point_can_be_tried_in_turn(self):
        survivors = []
        for n in range(1, 10):
            inner = MemoryStore(Clock())
            faulty = FaultyStore(inner)
            faulty.crash_at(n, "after")
            try:
                await faulty.create("a", b"1")
                await faulty.get("a")
                await faulty.delete("a")
            except Crash:
                survivors.append(await keys(inner))
            if not faulty.crashed:
                break
        assert survivors == [["a"], ["a"], []]

    async def test_it_can_be_aimed_at_one_object(self, inner, faulty):
        faulty.next("replace", Fault.CRASH, key="queue.json", when="after")
        version = await faulty.create("queue.json", b"1")
        with pytest.raises(Crash):
            await faulty.replace("queue.json", b"2", version)
        assert await content(inner, "queue.json") == b"2"

    async def test_the_requests_in_flight_die_with_the_process(self, inner, faulty):
        before, after = faulty.hold("create", key="a"), faulty.hold("create", key="b", when="after")
        unknown = faulty.hold("create", key="c", when="after")
        faulty.next("create", Fault.REPLY_LOST, key="c")
        writing = [asyncio.create_task(faulty.create(key, b"1")) for key in "abc"]
        for held in (before, after, unknown):
            await held.arrived()
        faulty.crash()
        for held in (before, after, unknown):
            held.release()
        for task in writing:
            with pytest.raises(Crash):
                await task
        assert await keys(inner) == ["b", "c"]
        assert [call.outcome for call in faulty.log] == ["crash"] * 3

    async def test_a_crash_comes_before_other_faults_of_the_same_request(self, faulty):
        faulty.next("any", Fault.ERROR, times=2)
        faulty.crash_at(2)
        with pytest.raises(StoreError):
            await faulty.get("a")
        with pytest.raises(Crash):
            await faulty.get("a")


class TestScripts:
    async def test_faults_come_in_the_order_in_which_they_were_written(self, faulty):
        faulty.next("create", Fault.ERROR)
        faulty.next("write", Fault.REQUEST_LOST)
        with pytest.raises(StoreError):
            await faulty.create("a", b"1")
        with pytest.raises(OutcomeUnknown):
            await faulty.create("a", b"1")
        await faulty.create("a", b"1")
        assert [call.fault for call in faulty.log] == [Fault.ERROR, Fault.REQUEST_LOST, None]

    async def test_other_verbs_and_keys_pass(self, faulty):
        faulty.next("create", Fault.ERROR, key="log/*")
        await faulty.get("log/1")
        await faulty.create("queue.json", b"1")
        with pytest.raises(StoreError):
            await faulty.create("log/1", b"1")

    async def test_skipped_requests_pass(self, faulty):
        faulty.next("get", Fault.ERROR, skip=2)
        await faulty.get("a")
        await faulty.get("a")
        with pytest.raises(StoreError):
            await faulty.get("a")

    async def test_healing_forgets_what_was_planned(self, faulty):
        faulty.next("any", Fault.ERROR, times=100)
        faulty.hold("any")
        faulty.heal()
        await faulty.create("a", b"1")

    def test_impossible_plans_are_refused(self, faulty):
        with pytest.raises(ValueError, match="no verb"):
            faulty.next("put", Fault.ERROR)
        with pytest.raises(ValueError, match="counts from 1"):
            faulty.crash_at(0)
        with pytest.raises(ValueError, match="late_after"):
            faulty.next("any", Fault.LATE, late_after=0)


class TestDamage:
    @pytest.mark.parametrize(
        ("how", "at", "left"),
        [
            ("truncate", None, b"01234"),
            ("truncate", 1, b"0"),
            ("flip", None, b"0123446789"),
            ("flip", 0, b"1123456789"),
            ("empty", None, b""),
        ],
    )
    async def test_an_object_is_damaged_in_place(self, inner, faulty, how, at, left):
        await inner.create("a", b"0123456789")
        await faulty.corrupt("a", how, at)
        assert await content(inner, "a") == left
        assert not faulty.calls

    async def test_garbage_is_no_text(self, inner, faulty):
        await inner.create("a", b"{}")
        await faulty.corrupt("a", "garbage")
        with pytest.raises(UnicodeDecodeError):
            (await inner.get("a")).data.decode()

    async def test_damage_that_would_change_nothing_is_refused(self, inner, faulty):
        with pytest.raises(LookupError):
            await faulty.corrupt("a", "flip")
        await inner.create("a", b"")
        with pytest.raises(ValueError, match="as it is"):
            await faulty.corrupt("a", "flip")
