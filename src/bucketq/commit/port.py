"""What a client needs of whoever commits for it: the in-process committer, later a broker behind HTTP or gRPC."""

from __future__ import annotations

from typing import Any, Protocol

from bucketq.queue import commands as c
from bucketq.queue.answers import JobInfo


class Port(Protocol):
    """Takes commands, answers when they are durable. Raises the errors of `bucketq.errors`."""

    async def call(self, command: c.Command) -> Any:
        """Decide one command; the answer's type stands in the command's docstring. A caller that is cancelled
        while its claim is being written gets the job given back."""
        ...

    async def claim(self, command: c.Claim, wait_s: float) -> list[JobInfo]:
        """A claim that waits up to `wait_s` seconds for a job (0: answers at once, maybe with none)."""
        ...

    async def upkeep(self) -> None:
        """Do now what is due: expiry, schedules, sealing, archive, pruning."""
        ...

    async def close(self) -> None:
        """Answer everybody, seal, and stop."""
        ...
