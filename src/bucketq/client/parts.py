"""The parts of `push_many` and `transact`, and the way from a push's options to its command."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

from msgspec import Raw

from bucketq.client import checks
from bucketq.errors import SettingInvalid
from bucketq.queue.commands import PushItem
from bucketq.settings import Duration, unknown

if TYPE_CHECKING:
    from bucketq.client.blocking import SyncClaim, SyncQueue
    from bucketq.client.claim import Claim
    from bucketq.client.queue import Queue

    AnyClaim: TypeAlias = Claim[Any] | SyncClaim[Any]
    AnyQueue: TypeAlias = Queue[Any] | SyncQueue[Any]


class PushOptions(TypedDict, total=False):
    """How a job is pushed; see `Queue.push`."""

    priority: int
    delay: Duration
    run_at: datetime | None
    key: str | None
    dedup: str | None
    dedup_window: Duration | None
    max_attempts: int | None
    headers: dict[str, str] | None
    ttl: Duration | None


class Push:
    """An item of `push_many` with options of its own; those it does not name are those of the call."""

    __slots__ = ("options", "payload")

    def __init__(self, payload: Any, **options: Unpack[PushOptions]) -> None:
        self.payload = payload
        self.options = _known(options)


class PushTo:
    """Part of a transaction: push a job to a queue, given by name or, if it is a typed one, as itself."""

    __slots__ = ("options", "payload", "queue")

    def __init__(self, queue: str | AnyQueue, payload: Any, **options: Unpack[PushOptions]) -> None:
        self.queue = queue
        self.payload = payload
        self.options = _known(options)


class Complete:
    """Part of a transaction: complete a claim."""

    __slots__ = ("claim", "result")

    def __init__(self, claim: AnyClaim, result: Any = None) -> None:
        self.claim = claim
        self.result = result


class Fail:
    """Part of a transaction: fail a claim."""

    __slots__ = ("claim", "dead", "error", "retry_in")

    def __init__(
        self, claim: AnyClaim, error: str | BaseException, retry_in: Duration | None = None, dead: bool = False
    ) -> None:
        self.claim = claim
        self.error = error
        self.retry_in = retry_in
        self.dead = dead


class Release:
    """Part of a transaction: give a claim back."""

    __slots__ = ("claim", "delay")

    def __init__(self, claim: AnyClaim, delay: Duration = 0.0) -> None:
        self.claim = claim
        self.delay = delay


Part = PushTo | Complete | Fail | Release


def _known(options: Mapping[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in PushOptions.__annotations__:
            raise unknown("option of a push", name, PushOptions.__annotations__)
    return dict(options)


def merged(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """An item's own options before those of the call; its own time replaces the call's, however either is said."""
    options = {**common, **own}
    if "delay" in own and "run_at" not in own:
        options.pop("run_at", None)
    if "run_at" in own and "delay" not in own:
        options.pop("delay", None)
    return options


def push_item(
    payload: Raw,
    binary: bool,
    priority: int = 0,
    delay: Duration = 0.0,
    run_at: datetime | None = None,
    key: str | None = None,
    dedup: str | None = None,
    dedup_window: Duration | None = None,
    max_attempts: int | None = None,
    headers: dict[str, str] | None = None,
    ttl: Duration | None = None,
) -> PushItem:
    """A checked item. Raises `SettingInvalid`. On the hot path: what was not given costs one comparison."""
    if type(priority) is not int or priority:
        priority = checks.PRIORITY.check("priority", priority)
    delay_us = 0 if type(delay) is float and delay == 0.0 else checks.us(checks.DELAY.check("delay", delay))
    if run_at is not None and delay_us:
        raise SettingInvalid("run_at and delay both say when the job runs: give one of them")
    if dedup_window is not None and dedup is None:
        raise SettingInvalid("dedup_window is how long a dedup key counts: give dedup too")
    return PushItem(
        payload,
        binary,
        priority,
        delay_us,
        0 if run_at is None else checks.moment_us("run_at", run_at),
        None if key is None else checks.text("key", key),
        None if dedup is None else checks.text("dedup", dedup),
        None if dedup_window is None else checks.us(checks.DEDUP_WINDOW.check("dedup_window", dedup_window)),
        0 if max_attempts is None else checks.MAX_ATTEMPTS.check("max_attempts", max_attempts),
        None if headers is None else checks.headers(headers),
        0 if ttl is None else checks.us(checks.TTL.check("ttl", ttl)),
    )
