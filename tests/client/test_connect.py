from __future__ import annotations

import asyncio

import pytest

import bucketq
from bucketq import errors
from bucketq.errors import BrokerUnavailable, BucketqError, SettingInvalid, StoreError
from bucketq.store.base import Version


class CountingStore(bucketq.MemoryStore):
    closed = 0

    async def close(self) -> None:
        self.closed += 1


class CarelessStore(CountingStore):
    """Ignores conditions, as some servers do."""

    async def create(self, key: str, data: bytes) -> Version:
        found = await self.get(key)
        return await super().create(key, data) if found is None else found.version


async def test_a_client_is_opened_by_async_with():
    async with bucketq.connect("memory://") as client:
        await client.queue("mail").push(1)
    with pytest.raises(BucketqError, match="closed"):
        await client.queue("mail").push(1)


async def test_a_client_is_opened_by_await():
    client = await bucketq.connect("memory://")
    await client.queue("mail").push(1)
    await client.close()
    async with await bucketq.connect("memory://") as client:
        await client.queue("mail").push(1)


async def test_two_clients_of_one_memory_name_share_its_queues():
    async with bucketq.connect("memory://shared-by-two") as one, bucketq.connect("memory://shared-by-two") as two:
        job = await one.queue("mail").push({"a": 1})
        assert (await two.queue("mail").get(job.id)).payload == {"a": 1}


async def test_a_directory_keeps_the_queue(tmp_path):
    async with bucketq.connect(tmp_path.as_uri()) as client:
        await client.queue("mail").push("kept")
    async with bucketq.connect(tmp_path.as_uri()) as client:
        (claim,) = await client.queue("mail").claim()
        assert claim.payload == "kept"


async def test_a_store_of_the_callers_own_stays_open():
    store = CountingStore()
    async with bucketq.connect(store):
        pass
    assert store.closed == 0


@pytest.mark.parametrize("close", [True, False])
async def test_a_store_opened_by_url_is_closed_once(monkeypatch, close):
    store = CountingStore() if close else CarelessStore()
    monkeypatch.setattr("bucketq.client.connect.open_store", lambda url: store)
    if close:
        client = await bucketq.connect("memory://")
        await asyncio.gather(client.close(), client.close())
    else:
        with pytest.raises(StoreError, match="ignores this condition"):
            await bucketq.connect("memory://")
    assert store.closed == 1


async def test_a_store_that_ignores_conditions_is_refused_unless_told_not_to_look():
    with pytest.raises(StoreError, match="ignores this condition"):
        await bucketq.connect(CarelessStore())
    client = await bucketq.connect(CarelessStore(), probe=False)
    await client.close()


@pytest.mark.parametrize("url", ["http://h:1", "https://h", "grpc://h:1", "grpcs://h", "HTTP://h"])
def test_a_brokers_address_is_refused_for_now(url):
    with pytest.raises(SettingInvalid, match="not available in this version"):
        _ = bucketq.connect(url)


@pytest.mark.parametrize("target", [None, 5, b"memory://", object()])
def test_what_is_neither_url_nor_store_is_refused(target):
    with pytest.raises(SettingInvalid, match=r"a URL .* or a Store"):
        _ = bucketq.connect(target)


@pytest.mark.parametrize("url", ["mail", "ftp://x", ""])
async def test_an_unknown_url_is_refused(url):
    with pytest.raises(SettingInvalid):
        await bucketq.connect(url)


def test_a_bad_setting_is_refused_at_once():
    with pytest.raises(SettingInvalid, match="did you mean 'commit_interval'"):
        _ = bucketq.connect("memory://", commit_intervall=1)  # type: ignore[call-arg]
    with pytest.raises(SettingInvalid, match="did you mean 'commit_interval'"):
        bucketq.connect_sync("memory://", commit_intervall=1)  # type: ignore[call-arg]


async def test_no_broker_runs_yet():
    with pytest.raises(BrokerUnavailable, match="no broker runs"):
        await bucketq.connect("memory://", mode="broker")


async def test_a_setting_from_the_environment_counts(monkeypatch):
    monkeypatch.setenv("BUCKETQ_PAYLOAD_BYTES_MAX", "10")
    async with bucketq.connect("memory://") as client:
        with pytest.raises(bucketq.PayloadTooLarge):
            await client.queue("mail").push("x" * 20)


async def test_closing_answers_a_waiting_claim():
    client = await bucketq.connect("memory://")
    waiting = asyncio.create_task(client.queue("mail").claim(wait=600))
    await client.queues()
    await client.close()
    assert await waiting == []


def test_every_error_is_public():
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, BucketqError)}
    assert kinds <= set(bucketq.__all__)
