"""A purge of many jobs goes on from batch to batch, and does not touch what is pushed meanwhile."""

from __future__ import annotations

import pytest
from msgspec import Raw

from bucketq.queue import commands as c
from bucketq.queue.answers import AwaitArchive, Partial
from tests.queue.model.pair import Pair

READY = c.PushItem(Raw(b"1"))
SCHEDULED = c.PushItem(Raw(b"1"), delay_us=3_600_000_000)


@pytest.mark.parametrize("status", [None, "ready", "done"])
def test_a_purge_of_many_jobs_goes_on_from_batch_to_batch(status: c.JobStatus | None):
    pair = Pair()
    pair.ask(c.Configure("a", {"keep_finished_ms": 3_600_000}))
    pair.ask(c.Push("a", (READY, READY, SCHEDULED) * 400))
    if status == "done":
        pair.ask(c.Claim(("a",), 200, auto_complete=True))
    answers = [pair.ask(c.Purge("a", status))]
    while isinstance(answers[-1], (Partial, AwaitArchive)):
        rest = answers[-1].rest if isinstance(answers[-1], Partial) else c.Purge("a", status)
        pair.ask(c.Push("a", (READY, SCHEDULED)))
        pair.land()
        if isinstance(answers[-1], AwaitArchive):
            pair.archive()
        answers.append(pair.ask(rest))
    assert len(answers) == (3 if status == "done" else 2)
    assert answers[-1] == {None: 1_200, "ready": 800, "done": 200}[status]
    pair.land()
    pair.check()
