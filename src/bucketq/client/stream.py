"""Claims that were fetched together and are handed over one by one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

from bucketq.client.beats import Beats
from bucketq.client.claim import Claim
from bucketq.client.session import Session
from bucketq.client.taking import give_back
from bucketq.errors import LeaseLost

T = TypeVar("T")

POLL_WAIT_S = 20.0


class HeldClaims(Generic[T]):
    """Keeps the leases of the claims that wait for their turn, and gives back those that never get it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: deque[Claim[T]] = deque()
        self._beats: Beats | None = None
        session.held.add(self)

    def fill(self, claims: Sequence[Claim[T]]) -> None:
        self._waiting.extend(claims)
        live = [claim.lease for claim in claims if not claim._over]
        if len(live) > 1:
            self._beats = Beats(self._session.clock, min(live), self._beat_all, lambda: None)

    def take(self) -> Claim[T] | None:
        """The next one, or None."""
        claim = self._waiting.popleft() if self._waiting else None
        if not self._waiting:
            self._stop()
        return claim

    async def give_back(self) -> None:
        """Release what is left, as well as can be."""
        self._session.held.discard(self)
        self._stop()
        left = tuple(self._waiting)
        self._waiting.clear()
        await give_back(left)

    def _stop(self) -> None:
        if self._beats is not None:
            self._beats.stop()
            self._beats = None

    async def _beat_all(self) -> None:
        claims = [claim for claim in self._waiting if not claim._over]
        answers = await asyncio.gather(*(claim.heartbeat() for claim in claims), return_exceptions=True)
        for claim, answer in zip(claims, answers, strict=True):
            if isinstance(answer, LeaseLost) and claim in self._waiting:
                self._waiting.remove(claim)
