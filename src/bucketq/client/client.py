"""A client: queues, claims over several of them, and transactions, on one connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from bucketq.client import checks
from bucketq.client.claim import Claim, as_claim, settling
from bucketq.client.codecs import Codec, PlainCodec, codec_for
from bucketq.client.job import Job
from bucketq.client.parts import Complete, Fail, Part, PushTo, Release, push_item
from bucketq.client.queue import Queue
from bucketq.client.session import ClosedPort, Session
from bucketq.client.taking import claim_command, take
from bucketq.clock import Clock
from bucketq.commit.port import Port
from bucketq.errors import SettingInvalid
from bucketq.queue import commands as c
from bucketq.settings import Duration, Settings, shown

T = TypeVar("T")

_CLOSED = ClosedPort()


class Client:
    """The way to the queues of one bucket; made by `connect`. For the tasks of one event loop.

    Close it, or use it with `async with`: that answers every call under way. After that every call raises
    `BucketqError`.
    """

    def __init__(
        self, port: Port, settings: Settings, clock: Clock, after_close: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._session = Session(port, settings, clock)
        self._plain = PlainCodec(settings.payload_bytes_max)
        self._after_close = after_close
        self._closing = asyncio.Lock()

    @overload
    def queue(self, name: str, type: None = None) -> Queue[Any]: ...
    @overload
    def queue(self, name: str, type: type[T]) -> Queue[T]: ...
    def queue(self, name: str, type: Any = None) -> Queue[Any]:
        """The queue of that name; nothing is sent. With a type (msgspec Struct, dataclass, pydantic model, TypedDict,
        builtin or generic) payloads are checked both ways. Raises `SettingInvalid`."""
        codec = self._plain if type is None else codec_for(type, self._session.settings.payload_bytes_max)
        return Queue(checks.name("queue", name), codec, self._session)

    async def claim(
        self,
        queues: Iterable[str] | str | None = None,
        n: int = 1,
        wait: Duration = 0.0,
        lease: Duration | None = None,
        worker: str | None = None,
        group: str | None = None,
        key: str | None = None,
        auto_complete: bool = False,
    ) -> list[Claim[Any]]:
        """As `Queue.claim`, from several queues in the order given, or from any (None). Payloads are plain values."""
        command = claim_command(self._session, checks.names(queues), n, lease, worker, group, key, auto_complete)
        return await take(self._session, command, checks.WAIT.check("wait", wait), self._plain)

    async def transact(self, parts: Iterable[Part]) -> list[Job[Any] | None]:
        """Do all of it, or nothing: `Complete`, `Fail` and `Release` of claims, `PushTo` queues. For each part, in
        order: the job for a push or a failure, else None. Raises what the first impossible part raises."""
        if not isinstance(parts, Iterable):
            raise SettingInvalid(f"transact takes parts, as in a list; got {shown(parts)}")
        given = list(parts)
        if not given:
            return []
        if len(given) > checks.ITEMS_MAX:
            raise SettingInvalid(f"transact is one write, of at most {checks.ITEMS_MAX:,} parts; got {len(given):,}")
        built = [self._command(part) for part in given]
        claims = [as_claim(part.claim) for part in given if not isinstance(part, PushTo)]
        with settling(claims):
            answers = await self._session.port.call(c.Transact(tuple(command for command, _ in built)))
        for claim in claims:
            claim._over = True
        return [_answer(answer, codec) for answer, (_, codec) in zip(answers, built, strict=True)]

    async def queues(self) -> list[str]:
        """The names of the queues there are, sorted."""
        names: list[str] = await self._session.port.call(c.ListQueues())
        return names

    async def upkeep(self) -> None:
        """Do now what is due: expiry, schedules, sealing, archive, checkpoint. For cron, where no broker runs."""
        await self._session.port.upkeep()

    async def close(self) -> None:
        """Answer every call under way, release what was fetched and not handed over, and stop. Again: does nothing."""
        async with self._closing:
            session = self._session
            await asyncio.gather(*(held.give_back() for held in tuple(session.held)))
            port, session.port = session.port, _CLOSED
            try:
                await port.close()
            finally:
                after, self._after_close = self._after_close, None
                if after is not None:
                    await after()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _command(self, part: object) -> tuple[c.Push | c.Complete | c.Fail | c.Release, Codec[Any]]:
        if isinstance(part, PushTo):
            queue, codec = self._target(part.queue)
            return c.Push(queue, (push_item(*codec.encode(part.payload), **part.options),)), codec
        if not isinstance(part, Complete | Fail | Release):
            raise SettingInvalid(f"transact takes Complete, Fail, Release and PushTo; got {shown(part)}")
        claim = as_claim(part.claim)
        if isinstance(part, Complete):
            return claim._complete_command(part.result), claim._codec
        if isinstance(part, Fail):
            return claim._fail_command(part.error, part.retry_in, part.dead), claim._codec
        return claim._release_command(part.delay), claim._codec

    def _target(self, value: object) -> tuple[str, Codec[Any]]:
        queue = getattr(value, "_inner", value)
        if isinstance(queue, Queue):
            return queue.name, queue._codec
        return checks.name("queue", queue), self._plain


def _answer(answer: Any, codec: Codec[Any]) -> Job[Any] | None:
    """Of a push: its one job; of a failure: the job; else None."""
    if isinstance(answer, Sequence):
        (answer,) = answer
    return None if answer is None else Job(answer, codec)
