"""A client on virtual time, over the state machine alone and, where there is one, over the real committer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

import bucketq
import bucketq.commit
from bucketq.client.client import Client
from bucketq.settings import Settings
from bucketq.testing import Clock
from tests.client.machine_port import MachinePort, Tap

PORTS = ["machine", "committer"] if hasattr(bucketq.commit, "open_committer") else ["machine"]

Connect = Callable[..., Awaitable[Client]]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=PORTS)
async def connect(request: pytest.FixtureRequest, clock: Clock) -> AsyncIterator[Connect]:
    """Opens clients, and closes them at the end."""
    opened: list[Client] = []

    async def open_client(**settings: object) -> Client:
        if request.param == "machine":
            client = Client(MachinePort(clock), Settings.checked(**settings), clock)
        else:
            client = await bucketq.connect(bucketq.MemoryStore(clock), clock=clock, **settings)  # type: ignore[arg-type]
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
