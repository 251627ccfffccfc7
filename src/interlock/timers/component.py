"""The timers of a server: one loop for each, and one that writes down what happened."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.errors import LockServiceUnavailable
from interlock.model.schedule import Every
from interlock.model.schedule_json import encode_schedule
from interlock.runtime.clock import DatabaseClock
from interlock.runtime.loop import Loop
from interlock.store.lock_slot import lock_service
from interlock.store.timer import TimerDeclaration, Timers
from interlock.timers.breaker import Breaker
from interlock.timers.runner import Surroundings, TimerRunner
from interlock.timers.time import DatabaseTime

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime

    from interlock.locks.locks import Locks
    from interlock.observe.bus import Emit
    from interlock.runtime.clock import Clock
    from interlock.store.database import Database
    from interlock.store.timer import TimerTotals
    from interlock.timers.registry import TimerRegistry
    from interlock.timers.timer import Timer

WRITE_INTERVAL = timedelta(seconds=5)
WRITE_ALL_EVERY = 720  # once an hour also those to which nothing happened: a timer that nobody names is forgotten
FORGET_AFTER = timedelta(days=30)
FORGET_AT_MOST = 1000


class TimerComponent:
    name = "timers"

    def __init__(
        self,
        registry: TimerRegistry,
        database: Database,
        locks: Locks,
        *,
        app: str | None,
        server: str,
        distributed: bool,
        emit: Emit,
        clock: Clock | None = None,
    ) -> None:
        self._database, self._rows, self._app = database, Timers(database.sql, registry.namespace), app
        self._timers, self._server, self._clock = registry.declared, server, clock or DatabaseClock()
        self._time = DatabaseTime(self._read_time, moves=self._clock.injected() is None)
        around = Surroundings(
            locks=locks,
            breaker=Breaker(emit=emit),
            time=self._time,
            take_tick=self._take_tick,
            emit=emit,
            server=server,
            distributed=distributed,
        )
        self.runners = [TimerRunner(timer, around) for timer in self._timers]
        self._loops = [Loop(f"timer {runner.timer.name}", self._tick_of(runner), emit=emit) for runner in self.runners]
        self._writer = Loop("timer totals", self._write, emit=emit, first_delay=WRITE_INTERVAL)
        self._writes = 0
        self._fatal: LockServiceUnavailable | None = None
        self._distributed = distributed
        self._started = False

    def busy(self) -> int:
        return sum(runner.running for runner in self.runners)

    async def start(self) -> None:
        """Read the database's time and say which timers there are."""
        await self._time.refresh()
        async with self._database.connection() as conn:
            await self._rows.declare(conn, self._app, [self._declaration(timer) for timer in self._timers])
        self._started = True

    async def step(self) -> list[TimerTotals]:
        """Fire what is due now and wait until it has ended; answers what happened, by timer. For tests."""
        await (self._time.refresh() if self._started else self.start())
        for runner in self.runners:
            await runner.tick()
        for runner in self.runners:
            await runner.finish()
        return await self._add_totals([runner for runner in self.runners if runner.counts.any()])

    async def cancel(self) -> None:
        """End what still runs."""
        for runner in self.runners:
            await runner.cancel()

    async def run(self) -> None:
        """Until stopped; then what runs may finish, and the totals are written a last time."""
        loops = [asyncio.create_task(loop.run(), name=loop.name) for loop in (*self._loops, self._writer)]
        try:
            await asyncio.gather(*loops)
            for runner in self.runners:
                await runner.finish()
        finally:
            await _end(loops)
            await self.cancel()
        if self._fatal is not None:
            raise self._fatal
        await self._add_totals(self.runners)

    def stop(self) -> None:
        for loop in (*self._loops, self._writer):
            loop.stop()

    def _tick_of(self, runner: TimerRunner) -> Callable[[], Awaitable[timedelta]]:
        async def tick() -> timedelta:
            try:
                return await runner.tick()
            except LockServiceUnavailable as error:  # only a timer that was declared to raise lets it through
                self._fatal = error
                self.stop()
                raise

        return tick

    async def _take_tick(self, timer: Timer, planned: datetime) -> bool:
        interval = timer.schedule.interval if isinstance(timer.schedule, Every) else None
        with lock_service(self._database.where):
            async with self._database.connection() as conn:
                tick = await self._rows.take_tick_if_left(
                    conn,
                    timer.name,
                    runs_per_tick=timer.runs_per_tick or 1,
                    interval=interval,
                    planned=planned if interval is None else None,
                    now=self._clock.injected(),
                )
        return tick is not None

    async def _read_time(self) -> datetime:
        async with self._database.connection() as conn:
            return await self._rows.clock(conn, self._clock.injected())

    async def _write(self) -> timedelta:
        """Write down what happened, and read the time again."""
        await self._time.refresh()
        self._writes += 1
        everything = self._writes % WRITE_ALL_EVERY == 0
        await self._add_totals([runner for runner in self.runners if everything or runner.counts.any()])
        if everything:
            async with self._database.tick() as conn:
                await self._rows.forget(conn, older_than=FORGET_AFTER, limit=FORGET_AT_MOST)
        return WRITE_INTERVAL

    async def _add_totals(self, runners: Sequence[TimerRunner]) -> list[TimerTotals]:
        ordered = sorted(runners, key=lambda runner: runner.timer.name)
        totals = [runner.counts.taken(lock_down=runner.lock_down) for runner in ordered]
        if totals:
            try:
                async with self._database.connection() as conn:
                    known = await self._rows.add_totals(conn, self._server, totals)
            except BaseException:
                for runner, each in zip(ordered, totals, strict=True):
                    runner.counts.put_back(each)
                raise
            gone = [(runner, each) for runner, each in zip(ordered, totals, strict=True) if each.name not in known]
            if gone:
                await self._declare_again(gone)
        return totals

    async def _declare_again(self, gone: Sequence[tuple[TimerRunner, TimerTotals]]) -> None:
        """A row may vanish, as when an older backup is restored; without it each tick would count as taken."""
        for runner, totals in gone:
            runner.counts.put_back(totals)
        async with self._database.connection() as conn:
            await self._rows.declare(conn, self._app, [self._declaration(runner.timer) for runner, _ in gone])

    def _declaration(self, timer: Timer) -> TimerDeclaration:
        return TimerDeclaration(
            name=timer.name,
            schedule=encode_schedule(timer.schedule),
            max_concurrency=timer.max_concurrency,
            runs_per_tick=timer.runs_per_tick,
            distributed=self._distributed if timer.distributed is None else timer.distributed,
        )


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
