"""Calls: a command and whoever waits for its answer; and the claims that wait for a job."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from bucketq.clock import Timer
from bucketq.queue import commands as c
from bucketq.queue.answers import JobInfo


class Call:
    """One command on its way. `future` is None for what the committer asks itself."""

    __slots__ = ("answer", "changed", "command", "error", "future", "timer", "until_us")

    def __init__(self, command: c.Command, future: asyncio.Future[Any] | None, until_us: int = 0) -> None:
        self.command = command
        self.future = future
        self.until_us = until_us
        self.answer: Any = None
        self.error: Exception | None = None
        self.changed = False
        self.timer: Timer | None = None

    @property
    def abandoned(self) -> bool:
        return self.future is not None and self.future.cancelled()

    def finish(self) -> None:
        """Hand the answer over."""
        if self.error is not None:
            self.fail(self.error)
        elif self.future is not None and not self.future.done():
            self.future.set_result(self.answer)

    def fail(self, error: Exception) -> None:
        self.error = error
        if self.future is not None and not self.future.done():
            self.future.set_exception(error)

    def releases(self) -> list[Call]:
        """What gives back the jobs that this call claimed, for a caller who has gone."""
        command = self.command
        if self.error is not None or not isinstance(command, c.Claim) or command.auto_complete:
            return []
        jobs: list[JobInfo] = self.answer
        return [Call(c.Release(_handle(job)), None) for job in jobs]


def _handle(job: JobInfo) -> c.Handle:
    return c.Handle(job.queue, job.id, job.run.token if job.run is not None else 0, job.group)


def weight(command: c.Command) -> int:
    """About how many bytes a command brings into its batch."""
    if isinstance(command, c.Push):
        return sum(len(item.payload) for item in command.items)
    if isinstance(command, c.Complete) and command.result is not None:
        return len(command.result)
    if isinstance(command, c.Heartbeat) and command.progress is not None:
        return len(command.progress)
    if isinstance(command, c.Fail):
        return len(command.error)
    if isinstance(command, c.Transact | c.CompleteMany):
        return sum(weight(part) for part in command.parts)
    return 0


Wish = tuple[tuple[str, ...] | None, str, str | None]
"""What a waiting claim asks for: queues, group, key. Claims with the same wish are served in turn."""


def _wish(call: Call) -> Wish:
    command = call.command
    assert isinstance(command, c.Claim)
    return command.queues, command.group, command.key


class Waiting:
    """Claims that found nothing and wait, by what they wish for."""

    def __init__(self) -> None:
        self._calls: dict[Wish, dict[Call, None]] = {}
        self._wishes: dict[str | None, dict[Wish, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, call: Call) -> None:
        wish = _wish(call)
        self._calls.setdefault(wish, {})[call] = None
        for queue in wish[0] or (None,):
            self._wishes.setdefault(queue, {})[wish] = None

    def remove(self, call: Call) -> bool:
        """Whether it was waiting."""
        wish = _wish(call)
        calls = self._calls.get(wish, {})
        if call not in calls:
            return False
        del calls[call]
        if not calls:
            del self._calls[wish]
            for queue in dict.fromkeys(wish[0] or (None,)):
                del self._wishes[queue][wish]
                if not self._wishes[queue]:
                    del self._wishes[queue]
        return True

    def wishes_for(self, queues: Iterable[str]) -> list[Wish]:
        """The wishes that these queues might grant."""
        found = dict(self._wishes.get(None, {}))
        for queue in queues:
            found.update(self._wishes.get(queue, {}))
        return list(found)

    def first(self, wish: Wish) -> Call | None:
        return next(iter(self._calls.get(wish, ())), None)

    def take_all(self) -> list[Call]:
        taken = [call for calls in self._calls.values() for call in calls]
        self._calls.clear()
        self._wishes.clear()
        return taken
