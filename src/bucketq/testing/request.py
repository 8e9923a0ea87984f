"""One request on its way to a store: its line in the log, the gate it may wait at, the errors it can meet."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from bucketq.errors import BucketqError, Conflict, OutcomeUnknown, StoreError, StoreStopped
from bucketq.testing.plan import WRITES, ErrorKind, Fault, Verb, When

T_co = TypeVar("T_co", covariant=True)

Outcome = Literal["ok", "conflict", "unknown", "error", "crash", "cancelled"]


class Crash(Exception):
    """The process that used this store is dead. Not a `BucketqError`: nothing in bucketq expects it, just as nothing
    can handle the real thing."""


@dataclass(slots=True)
class Call:
    """A line of the log: `outcome` is what the caller was told (None: nothing yet), `stored` what the store itself
    said the first time the request reached it (None: it has not)."""

    verb: Verb
    key: str
    """Of a list, the prefix."""
    size: int
    """The bytes that were to be written."""
    fault: Fault | None = None
    outcome: Outcome | None = None
    stored: Outcome | None = None


class Held:
    """A request that waits for the test; made by `FaultyStore.hold`."""

    def __init__(self, when: When) -> None:
        self.when = when
        self._call: Call | None = None
        self._arrived = asyncio.Event()
        self._released = asyncio.Event()

    async def arrived(self) -> Call:
        """Wait until the request is here or, if held after that, has been applied."""
        await self._arrived.wait()
        assert self._call is not None
        return self._call

    def release(self) -> None:
        """Let the request go on. May come before the request does."""
        self._released.set()

    async def stop(self, call: Call) -> None:
        """The request is here: keep it until it is released."""
        self._call = call
        self._arrived.set()
        await self._released.wait()


class Request(Generic[T_co]):
    """What is sent to the store: never, once, or twice."""

    def __init__(self, call: Call, apply: Callable[[], Awaitable[T_co]], held: Held | None = None) -> None:
        self.call = call
        self._apply = apply
        self._held = held

    async def arrive(self) -> None:
        """Wait if held before being applied."""
        await self._wait("before")

    async def send(self) -> T_co:
        """Have it applied; the store's own reply."""
        try:
            answer = await self._apply()
        except BucketqError as error:
            self.call.stored = self.call.stored or outcome_of(error)
            await self._wait("after")
            raise
        self.call.stored = self.call.stored or "ok"
        await self._wait("after")
        return answer

    async def send_unheard(self) -> None:
        """Have it applied; nobody hears the reply."""
        with suppress(BucketqError):
            await self.send()

    def no_reply(self) -> BucketqError:
        """What a caller is told who gets none."""
        message = f"{self.call.verb} {self.call.key}: no reply"
        cause = TimeoutError("injected by FaultyStore")
        return OutcomeUnknown(message, cause) if self.call.verb in WRITES else StoreError(message, cause)

    def refused(self, kind: ErrorKind) -> StoreError:
        """What a caller is told when the store has definitely done nothing."""
        message = f"{self.call.verb} {self.call.key}: {kind.replace('_', ' ')}"
        match kind:
            case "disk_full":
                return StoreError(message, OSError(errno.ENOSPC, "No space left on device"))
            case "read_only":
                return StoreError(message, OSError(errno.EROFS, "Read-only file system"))
            case "stopped":
                return StoreStopped(message, OSError(errno.EIO, "fsync failed"))
            case "throttled":
                return StoreError(message, ConnectionRefusedError("503 Slow Down"))

    async def _wait(self, when: When) -> None:
        if self._held is not None and self._held.when == when:
            await self._held.stop(self.call)


def outcome_of(error: BaseException) -> Outcome:
    """The word for it in the log."""
    match error:
        case Conflict():
            return "conflict"
        case OutcomeUnknown():
            return "unknown"
        case Crash():
            return "crash"
        case asyncio.CancelledError():
            return "cancelled"
        case _:
            return "error"
