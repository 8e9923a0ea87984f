"""The group commit engine."""

from __future__ import annotations

import secrets
from random import Random

from bucketq.clock import Clock, SystemClock
from bucketq.commit.committer import Committer
from bucketq.commit.port import Port
from bucketq.settings import Settings
from bucketq.store.base import Store


async def open_committer(
    store: Store, settings: Settings, clock: Clock | None = None, rng: Random | None = None
) -> Committer:
    """A committer on a store, loaded and running. The store stays the caller's to close."""
    committer = Committer(store, settings, clock or SystemClock(), rng or Random(secrets.randbits(256)))
    await committer.open()
    return committer


__all__ = ["Committer", "Port", "open_committer"]
