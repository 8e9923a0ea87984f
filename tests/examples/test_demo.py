"""The demo: it comes to its end, it can be stopped, and it goes on from where it was."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.examples.snippets import ROOT

PATIENCE_S = 120.0
Demo = Callable[[int], Awaitable[Process]]


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[Demo]:
    """Starts the demo, in a process group of its own, as a terminal does."""
    started: list[Process] = []

    async def start(jobs: int) -> Process:
        command = (sys.executable, ROOT / "examples" / "demo.py", tmp_path, "--jobs", str(jobs))
        started.append(await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def said(process: Process) -> str:
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert err.decode() == ""
    return out.decode()


async def test_the_demo_does_every_job_and_goes_on_after_ctrl_c(demo: Demo, tmp_path):
    stopped = await demo(1_000_000)
    assert stopped.stdout is not None
    while b"pushed" not in (line := await asyncio.wait_for(stopped.stdout.readline(), PATIENCE_S)):
        assert line, "it ended before it pushed"
    os.killpg(stopped.pid, signal.SIGINT)
    assert "Nothing is lost" in await said(stopped)
    assert stopped.returncode == 130

    finished = await demo(200)
    text = await said(finished)
    assert finished.returncode == 0
    assert "of the 200 jobs pushed just now, 200 are in it exactly once" in text
    assert f"{tmp_path / 'queue.json'}" in text
