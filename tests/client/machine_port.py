"""Ports for tests: the real state machine without a store, and a tap on any port."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from bucketq.clock import Clock
from bucketq.commit.port import Port
from bucketq.errors import BucketqError
from bucketq.queue import commands as c
from bucketq.queue.answers import AwaitArchive, JobInfo, Partial
from bucketq.queue.machine import Machine
from bucketq.queue.snapshot import Root
from bucketq.queue.state import State


class MachinePort:
    """Decides each command as a batch of its own, at once, in memory."""

    def __init__(self, clock: Clock, machine: Machine | None = None) -> None:
        self._clock = clock
        self._machine = machine or Machine(State(Root(tag="test"), clock.mono_us()))
        self._changed = asyncio.Event()
        self._closed = False

    async def call(self, command: c.Command) -> Any:
        await asyncio.sleep(0)
        answer = self._decide(command)
        while isinstance(answer, Partial | AwaitArchive):
            if isinstance(answer, AwaitArchive):
                self._archive()
            else:
                command = answer.rest
            answer = self._decide(command)
        return answer

    async def claim(self, command: c.Claim, wait_s: float) -> list[JobInfo]:
        end_us = self._clock.mono_us() + round(wait_s * 1_000_000)
        timer = self._clock.call_later(wait_s, self._wake) if wait_s else None
        try:
            while True:
                changed = self._changed
                found: list[JobInfo] = await self.call(command)
                if found or self._closed or self._clock.mono_us() >= end_us:
                    return found
                await changed.wait()
        finally:
            if timer is not None:
                timer.cancel()

    async def upkeep(self) -> None:
        self._archive()

    async def close(self) -> None:
        self._closed = True
        self._wake()

    def _decide(self, command: c.Command) -> Any:
        machine = self._machine
        machine.begin(self._clock.wall_us(), self._clock.mono_us(), random.random)
        try:
            return machine.decide(command)
        finally:
            machine.decide_due()
            if machine.events:
                self._wake()
            machine.settle()

    def _archive(self) -> None:
        segment = self._decide(c.Seal("2026-01-01T00"))
        if segment is not None:
            self._decide(c.Drop(segment.k))

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Tap:
    """Sees every command on its way to a port, and may raise or wait instead of passing it on."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self.seen: list[c.Command] = []
        self.errors: dict[type, BucketqError] = {}
        self.gates: dict[type, asyncio.Event] = {}
        self.reached = asyncio.Event()
        self.notice: Callable[[c.Command], None] = lambda command: None

    def of(self, kind: type) -> list[Any]:
        return [command for command in self.seen if isinstance(command, kind)]

    async def call(self, command: c.Command) -> Any:
        await self._pass(command)
        return await self._port.call(command)

    async def claim(self, command: c.Claim, wait_s: float) -> list[JobInfo]:
        await self._pass(command)
        return await self._port.claim(command, wait_s)

    async def upkeep(self) -> None:
        await self._port.upkeep()

    async def close(self) -> None:
        await self._port.close()

    async def _pass(self, command: c.Command) -> None:
        self.seen.append(command)
        self.notice(command)
        gate = self.gates.get(type(command))
        if gate is not None:
            self.reached.set()
            await gate.wait()
        if type(command) in self.errors:
            raise self.errors[type(command)]
