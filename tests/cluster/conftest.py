"""Actors that a failed test leaves behind are ended with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.cluster.cluster import Actor

Start = Callable[[str], Awaitable[Actor]]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return tmp_path.as_uri()


@pytest.fixture
async def start(url: str) -> AsyncIterator[Start]:
    """Starts an actor in a role."""
    started: list[Actor] = []

    async def start_actor(role: str) -> Actor:
        started.append(await Actor.start(role, url))
        return started[-1]

    yield start_actor
    for actor in started:
        await actor.kill()
