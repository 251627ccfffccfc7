"""Three servers, one timer: how often it runs for one tick, and who takes over."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from datetime import timedelta

import pytest

from interlock import Interlock, every
from interlock.observe.events import TimerEnded, TimerStarted
from interlock.store.timer import Timers
from tests.harness.child import tell
from tests.harness.waiting import eventually

SERVERS = ("web-1", "web-2", "web-3")


async def serve(dsn: str, name: str, interval: float, runs_per_tick: int | None, ttl: float = 5.0) -> None:
    """The child: a server whose timer runs for a moment; it tells of each tick it took and each run."""
    take = Timers.take_tick_if_left

    async def take_and_tell(self, *arguments, **how):
        tick = await take(self, *arguments, **how)
        if tick is not None:
            tell("tick", at=tick.timestamp())
        return tick

    Timers.take_tick_if_left = take_and_tell
    app = Interlock(dsn, server_name=name, name="shop", lock_ttl=timedelta(seconds=ttl))
    app.events.subscribe(lambda _: tell("started"), (TimerStarted,))
    app.events.subscribe(lambda _: tell("ended"), (TimerEnded,))

    @app.timer(every(seconds=interval), name="short", runs_per_tick=runs_per_tick)
    async def short() -> None:
        await asyncio.sleep(interval / 100)

    async with app.running(["timers"]):
        tell("ready")
        await asyncio.Event().wait()


async def hang(dsn: str, name: str) -> None:
    """The child: a server whose timer never ends by itself."""
    app = Interlock(dsn, server_name=name, name="shop", lock_ttl=timedelta(seconds=2))
    app.events.subscribe(lambda event: tell("started", slot=event.slot), (TimerStarted,))

    @app.timer(every(milliseconds=100), name="endless", max_concurrency=1)
    async def endless() -> None:
        await asyncio.Event().wait()

    async with app.running(["timers"]):
        tell("ready")
        await asyncio.Event().wait()


async def ticks_of_fleet(fleet, dsn: str, ticks: int, interval: float) -> Counter[int]:
    """How many runs each of so many ticks in a row had, once all servers were there, with one run allowed."""
    servers = [fleet.start(f"{__name__}:serve", dsn, name, interval, 1) for name in SERVERS]
    for server in servers:
        await server.expect("ready", 60)

    def taken() -> list[int]:
        return [round(message["at"] / interval) for server in servers for message in server.heard("tick")]

    before = len(taken())
    await eventually(lambda: len(taken()) > before, what="a tick")
    first = max(taken()) + 1
    await eventually(lambda: max(taken()) >= first + ticks, ticks * interval + 60, "enough ticks")
    return Counter(tick for tick in taken() if first <= tick < first + ticks)


async def test_with_one_run_per_tick_a_tick_never_has_two_and_hardly_one_is_missed(fleet, migrated):
    runs = await ticks_of_fleet(fleet, migrated, ticks=10, interval=1.0)
    assert set(runs.values()) == {1}
    assert len(runs) >= 8


@pytest.mark.slow
async def test_with_one_run_per_tick_at_least_28_of_30_ticks_run_and_none_twice(fleet, migrated):
    runs = await ticks_of_fleet(fleet, migrated, ticks=30, interval=1.0)
    assert set(runs.values()) == {1}
    assert len(runs) >= 28


async def test_control_without_a_limit_each_server_runs_in_every_tick(fleet, migrated):
    interval, ticks = 0.5, 8
    servers = [fleet.start(f"{__name__}:serve", migrated, name, interval, None) for name in SERVERS]
    for server in servers:
        await server.expect("ready", 60)
    runs = [len(server.heard("started")) for server in servers]
    began = time.monotonic()
    for server, before in zip(servers, runs, strict=True):
        enough = before + ticks
        await eventually(lambda server=server, enough=enough: len(server.heard("started")) >= enough, what="its runs")
    passed = (time.monotonic() - began) / interval
    total = sum(len(server.heard("started")) for server in servers) - sum(runs)
    assert total > 2 * passed, "about as many runs in each tick as there are servers"


async def test_the_timer_of_a_killed_server_runs_elsewhere_within_the_ttl(fleet, migrated):
    first = fleet.start(f"{__name__}:hang", migrated, "web-1")
    await first.expect("started")
    second = fleet.start(f"{__name__}:hang", migrated, "web-2")
    await second.expect("ready")
    with pytest.raises(AssertionError):
        await second.expect("started", 3)
    first.kill()
    await second.expect("started", 10)
