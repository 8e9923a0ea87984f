"""A client on virtual time, over the state machine alone and over the real committer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

import bucketq
from bucketq.client.client import Client
from bucketq.queue.machine import Machine
from bucketq.queue.snapshot import Root
from bucketq.queue.state import State
from bucketq.settings import Settings
from bucketq.testing import Clock
from tests.client.machine_port import MachinePort, Tap

Connect = Callable[..., Awaitable[Client]]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["machine", "committer"])
async def connect(request: pytest.FixtureRequest, clock: Clock) -> AsyncIterator[Connect]:
    """Opens clients on one bucket, and closes them at the end."""
    opened: list[Client] = []
    machine = Machine(State(Root(tag="test"), clock.mono_us()))
    store = bucketq.MemoryStore(clock)

    async def open_client(**settings: object) -> Client:
        if request.param == "machine":
            client = Client(MachinePort(clock, machine), Settings.checked(**settings), clock)
        else:
            client = await bucketq.connect(store, clock=clock, **settings)  # type: ignore[arg-type]
        opened.append(client)
        return client

    yield open_client
    for client in opened:
        await client.close()


@pytest.fixture
async def client(connect: Connect) -> Client:
    return await connect(worker="me")


@pytest.fixture
def tap(client: Client) -> Tap:
    """On the client's way to its port."""
    tap = Tap(client._session.port)
    client._session.port = tap
    return tap
