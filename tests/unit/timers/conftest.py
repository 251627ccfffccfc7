from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import pytest

from interlock.errors import LockServiceUnavailable
from interlock.locks.locks import Locks
from interlock.locks.memory import MemoryLocks
from interlock.model.schedule import every
from interlock.timers.breaker import Breaker
from interlock.timers.runner import Surroundings, TimerRunner
from interlock.timers.time import DatabaseTime
from interlock.timers.timer import Timer


class Service(MemoryLocks):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.asked = False, 0

    async def acquire(self, request):
        self.asked += 1
        if self.down:
            raise LockServiceUnavailable(where="here", reason="it is down")
        return await super().acquire(request)


class World:
    """A server with one lock service, in which a test fires timers by hand."""

    def __init__(self) -> None:
        self.service, self.events, self.ticks = Service(), [], []
        self.tick_left = True
        self.now = datetime(2030, 1, 1, tzinfo=UTC)
        self._closing = AsyncExitStack()

    async def _backend(self):
        return self.service

    def locks(self, owner: str) -> Locks:
        locks = Locks(self._backend, owner=lambda: owner, server_name=owner, emit=self.events.append)
        self._closing.push_async_callback(locks.aclose)
        return locks

    async def take_tick(self, _, planned) -> bool:
        self.ticks.append(planned)
        return self.tick_left

    async def runner(self, body, server: str = "one", distributed: bool = True, **options) -> TimerRunner:
        clock = DatabaseTime(self._read_time, clock=lambda: 0.0)
        await clock.refresh()
        around = Surroundings(
            locks=self.locks(server),
            breaker=Breaker(emit=self.events.append),
            time=clock,
            take_tick=self.take_tick,
            emit=self.events.append,
            server=server,
            distributed=distributed,
        )
        schedule = options.pop("schedule", every(seconds=10))
        runner = TimerRunner(Timer(name="t", body=body, schedule=schedule, **options), around)
        self._closing.push_async_callback(runner.cancel)
        return runner

    async def _read_time(self):
        return self.now

    async def fire(self, runner: TimerRunner):
        return await runner.fire(self.now)

    def said(self, kind) -> list:
        return [event for event in self.events if isinstance(event, kind)]

    async def close(self) -> None:
        await self._closing.aclose()


class Gate:
    """A body that runs until the test lets it go."""

    def __init__(self) -> None:
        self.entered, self._go = 0, asyncio.Event()

    async def __call__(self) -> None:
        self.entered += 1
        await self._go.wait()

    def open(self) -> None:
        self._go.set()


@pytest.fixture
async def world():
    world = World()
    yield world
    await world.close()


@pytest.fixture
def gate() -> Gate:
    return Gate()
