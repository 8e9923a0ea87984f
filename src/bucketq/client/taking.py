"""Claiming: from the options of a claim to claims whose payloads are what the queue's type says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from msgspec import structs

from bucketq.client import checks
from bucketq.client.claim import Claim, settling
from bucketq.client.codecs import Codec, PlainCodec
from bucketq.client.session import Session
from bucketq.clock import SECOND_US
from bucketq.errors import BucketqError, LeaseLost, PayloadInvalid
from bucketq.queue import commands as c
from bucketq.settings import Duration, Flag

T = TypeVar("T")

_FLAG = Flag()


def claim_command(
    session: Session,
    queues: tuple[str, ...] | None,
    n: int,
    lease: Duration | None,
    worker: str | None,
    group: str | None,
    key: str | None,
    auto_complete: bool,
) -> c.Claim:
    """A checked command. Raises `SettingInvalid`."""
    return c.Claim(
        queues,
        checks.COUNT.check("n", n),
        None if lease is None else checks.ms(checks.LEASE.check("lease", lease)),
        checks.text("worker", worker) or session.settings.worker,
        checks.group(group),
        checks.text("key", key),
        _FLAG.check("auto_complete", auto_complete),
    )


async def take(session: Session, command: c.Claim, wait_s: float, codec: Codec[T]) -> list[Claim[T]]:
    """Claims with valid payloads. A job whose payload is not of the queue's type is failed with `PayloadInvalid`,
    and the wait goes on if nothing else came."""
    if isinstance(codec, PlainCodec):
        infos = await session.port.claim(command, wait_s)
        return [Claim(info, codec, session, command.auto_complete) for info in infos]
    # completed only once its payload is known to be valid
    plain = structs.replace(command, auto_complete=False) if command.auto_complete else command
    end_us = session.clock.mono_us() + checks.us(wait_s)
    while True:
        infos = await session.port.claim(plain, wait_s)
        claims = [Claim(info, codec, session) for info in infos]
        try:
            usable = await _valid(claims)
            if command.auto_complete:
                usable = await _completed(session, usable)
        except BaseException:
            await give_back(claims)
            raise
        wait_s = (end_us - session.clock.mono_us()) / SECOND_US
        if usable or not infos or wait_s <= 0:
            return usable


async def give_back(claims: Iterable[Claim[Any]]) -> None:
    """Release those that have not ended, as well as can be: what can't be released loses its lease."""
    releases = [claim.release() for claim in claims if not claim._over]
    await asyncio.gather(*releases, return_exceptions=True)


async def _valid(claims: Sequence[Claim[T]]) -> list[Claim[T]]:
    valid: list[Claim[T]] = []
    failures: list[Awaitable[None]] = []
    for claim in claims:
        try:
            _ = claim.payload
        except PayloadInvalid as error:
            failures.append(_fail(claim, error))
        else:
            valid.append(claim)
    await asyncio.gather(*failures)
    return valid


async def _fail(claim: Claim[Any], error: PayloadInvalid) -> None:
    with suppress(BucketqError):  # the lease will run out, which counts just the same
        await claim.fail(error)


async def _completed(session: Session, claims: list[Claim[T]]) -> list[Claim[T]]:
    answers = await complete_many(session, claims)
    return [claim for claim, error in zip(claims, answers, strict=True) if error is None]


async def complete_many(session: Session, claims: Sequence[Claim[Any]]) -> list[BucketqError | None]:
    """One command for all of them; for each, in order, None or the error."""
    if not claims:
        return []
    with settling(claims):
        answers: list[BucketqError | None] = await session.port.call(
            c.CompleteMany(tuple(claim._complete_command() for claim in claims))
        )
    for claim, error in zip(claims, answers, strict=True):
        claim._over = claim._over or error is None or isinstance(error, LeaseLost)
        claim._lost = claim._lost or isinstance(error, LeaseLost)
    return answers
