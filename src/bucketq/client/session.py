"""What a client's queues and claims share."""

from __future__ import annotations

from typing import Any, Protocol

from bucketq.clock import Clock
from bucketq.commit.port import Port
from bucketq.errors import BucketqError
from bucketq.queue import commands as c
from bucketq.queue.answers import JobInfo
from bucketq.settings import Settings


class Held(Protocol):
    """Claims that were fetched and not handed over yet."""

    async def give_back(self) -> None: ...


class Session:
    """The port that takes the commands, and what is settled for the whole client. The port is replaced by one
    that refuses when the client is closed."""

    __slots__ = ("clock", "held", "port", "settings")

    def __init__(self, port: Port, settings: Settings, clock: Clock) -> None:
        self.port = port
        self.settings = settings
        self.clock = clock
        self.held: set[Held] = set()


class ClosedPort:
    """Refuses every call."""

    async def call(self, command: c.Command) -> Any:
        raise self._error()

    async def claim(self, command: c.Claim, wait_s: float) -> list[JobInfo]:
        raise self._error()

    async def upkeep(self) -> None:
        raise self._error()

    async def close(self) -> None:
        """Closing twice is once."""

    @staticmethod
    def _error() -> BucketqError:
        return BucketqError("the client is closed: connect again")
