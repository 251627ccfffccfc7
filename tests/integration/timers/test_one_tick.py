"""Servers that take the tick of a timer in the same instant, or die right after: it runs once, or not at all."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from interlock import Interlock, every, failpoints
from interlock.testing import stepper
from tests.harness.unguarded import take_guard_off

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
GUARD = {"timer/take_tick": "t.tick_at = tick.at and t.tick_runs < :runs_per_tick::integer"}


@pytest.fixture
def armed():
    yield failpoints.arm
    failpoints.disarm()


@pytest.fixture
def servers(migrated) -> list[Interlock]:
    """Two of them, with a slot for each and one run for both."""
    apps = [Interlock(migrated, name="shop", server_name=name) for name in ("one", "two")]
    for app in apps:
        app.ran = []

        async def body(app=app) -> None:
            app.ran.append(1)

        app.add_timer("once", body, every(minutes=1), spread_start=False, runs_per_tick=1, max_concurrency=2)
    return apps


async def runs_of_both(servers, armed) -> int:
    """Each has its slot before either takes the tick."""
    armed("timers.before_tick", asyncio.Barrier(2).wait)
    async with stepper(servers[0], start=NOON) as first, stepper(servers[1], start=NOON) as second:
        await asyncio.gather(first.tick("timers"), second.tick("timers"))
    return sum(len(app.ran) for app in servers)


async def test_of_two_servers_with_a_slot_each_one_runs(servers, armed):
    assert await runs_of_both(servers, armed) == 1


async def test_control_without_the_count_of_the_tick_both_run(servers, armed, monkeypatch):
    take_guard_off(monkeypatch, GUARD, "t.tick_at = tick.at and :runs_per_tick::integer > 0")
    assert await runs_of_both(servers, armed) == 2


async def test_a_tick_is_used_up_by_a_server_that_dies_before_it_runs(servers, armed):
    async def die() -> None:
        raise asyncio.CancelledError

    async with stepper(servers[0], start=NOON) as first, stepper(servers[1], start=NOON) as second:
        armed("timers.after_tick", die)
        with pytest.raises(asyncio.CancelledError):
            await first.tick("timers")
        failpoints.disarm()
        [totals] = await second.tick("timers")
        assert totals.skips == {"tick_taken": 1}
        second.advance(timedelta(minutes=1))
        await second.tick("timers")
    assert [len(app.ran) for app in servers] == [0, 1]
