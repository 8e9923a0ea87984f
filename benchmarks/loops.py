"""Event loops to run on: the standard one, and uvloop where it is installed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def loops() -> dict[str, LoopFactory]:
    found: dict[str, LoopFactory] = {"asyncio": asyncio.new_event_loop}
    try:
        import uvloop
    except ImportError:
        return found
    found["uvloop"] = uvloop.new_event_loop
    return found


def run_on(loop: LoopFactory, work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(work)
