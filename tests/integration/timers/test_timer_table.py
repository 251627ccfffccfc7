"""The tick of the fleet and the totals, on PostgreSQL."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from interlock.model.schedule import every
from interlock.model.schedule_json import encode_schedule
from interlock.store.database import Database
from interlock.store.settings import StoreSettings
from interlock.store.timer import TimerDeclaration, Timers, TimerTotals

NOW = datetime(2030, 1, 1, 12, 0, 7, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ALIVE = """
INSERT INTO interlock.server (id, name, roles, trains, tags, slots, host, pid, version, lease, lease_until, renewed_at,
                              steady_since, started_at)
VALUES (gen_random_uuid(), $1, '{}', '{}', '{}', 0, 'here', 1, '1', '30 s', now(), now(), now(), now())
"""


@pytest.fixture
async def database(migrated):
    database = Database(migrated, StoreSettings())
    yield database
    await database.close()


@pytest.fixture
async def timers(database):
    timers = Timers(database.sql, "test")
    declared = TimerDeclaration(
        name="t", schedule=encode_schedule(every(minutes=1)), max_concurrency=2, runs_per_tick=1, distributed=True
    )
    async with database.connection() as conn:
        await timers.declare(conn, "billing", [declared])
    return timers


async def take(database, timers, **how) -> datetime | None:
    async with database.connection() as conn:
        return await timers.take_tick_if_left(conn, "t", **{"runs_per_tick": 1, "interval": MINUTE, **how})


async def test_a_tick_of_an_interval_is_the_floor_of_the_databases_time_and_taken_once(database, timers):
    assert await take(database, timers, now=NOW) == NOW.replace(second=0)
    assert await take(database, timers, now=NOW + timedelta(seconds=52)) is None
    assert await take(database, timers, now=NOW + timedelta(seconds=53)) == NOW.replace(second=0) + MINUTE


async def test_a_tick_of_cron_is_its_planned_time(database, timers):
    assert await take(database, timers, planned=NOW, interval=None) == NOW
    assert await take(database, timers, planned=NOW, interval=None) is None


async def test_a_tick_in_the_past_is_never_taken_again(database, timers):
    await take(database, timers, planned=NOW, interval=None)
    assert await take(database, timers, planned=NOW - MINUTE, interval=None) is None


async def test_a_tick_has_as_many_runs_as_declared(database, timers):
    taken = [await take(database, timers, now=NOW, runs_per_tick=3) for _ in range(5)]
    assert [tick is not None for tick in taken] == [True, True, True, False, False]


@pytest.mark.parametrize("interval", [timedelta(milliseconds=1), timedelta(days=1), timedelta(weeks=1)])
async def test_the_grid_does_not_depend_on_the_time_zone_of_the_session(database, timers, interval):
    async with database.connection() as conn:
        ticks = set()
        for zone in ("UTC", "America/New_York", "Asia/Kolkata"):
            await conn.execute(f"SET TIME ZONE '{zone}'")
            await conn.execute("UPDATE interlock.timer SET tick_at = NULL")
            ticks.add(await timers.take_tick_if_left(conn, "t", runs_per_tick=1, interval=interval, now=NOW))
    [tick] = ticks
    assert NOW - interval < tick <= NOW


async def test_many_servers_at_once_take_a_tick_once(database, timers):
    taken = await asyncio.gather(*(take(database, timers, now=NOW) for _ in range(30)))
    assert sum(tick is not None for tick in taken) == 1


async def test_totals_of_servers_add_up_by_reason(database, timers):
    async with database.connection() as conn:
        ran = TimerTotals(name="t", runs=2, failures=1, last_run_ago=timedelta(seconds=5), skips={"slots_held": 3})
        await timers.add_totals(conn, "one", [ran])
        await timers.add_totals(conn, "two", [TimerTotals(name="t", skips={"slots_held": 1, "tick_taken": 4})])
        [row] = await timers.list(conn)
    assert (row.runs, row.failures, row.last_host) == (2, 1, "one")
    assert row.skips == {"slots_held": 4, "tick_taken": 4}
    assert row.schedule == {"kind": "every", "interval_us": 60_000_000}
    assert row.app == "billing"


async def test_it_knows_which_live_servers_the_lock_service_does_not_answer(database, timers):
    async with database.connection() as conn:
        for server in ("one", "two"):
            await timers.add_totals(conn, server, [TimerTotals(name="t", lock_down=True)])
        assert (await timers.list(conn))[0].lock_trouble == {}  # neither of them is alive
        await conn.execute(ALIVE, "one")
        await conn.execute(ALIVE, "two")
        before = (await timers.list(conn))[0].lock_trouble
        assert set(before) == {"one", "two"}
        await timers.add_totals(conn, "one", [TimerTotals(name="t", lock_down=True)])
        await timers.add_totals(conn, "two", [TimerTotals(name="t")])
        assert (await timers.list(conn))[0].lock_trouble == {"one": before["one"]}


async def test_a_declaration_changes_the_definition_and_keeps_the_totals(database, timers):
    async with database.connection() as conn:
        await timers.add_totals(conn, "one", [TimerTotals(name="t", runs=2)])
        changed = TimerDeclaration(
            name="t",
            schedule=encode_schedule(every(seconds=5)),
            max_concurrency=7,
            runs_per_tick=None,
            distributed=False,
        )
        await timers.declare(conn, "billing", [changed])
        [row] = await timers.list(conn, "t")
    assert (row.runs, row.max_concurrency, row.runs_per_tick, row.distributed) == (2, 7, None, False)


async def test_a_timer_that_nobody_declares_any_more_is_forgotten_after_a_while(database, timers):
    async with database.connection() as conn:
        assert await timers.forget(conn, older_than=timedelta(days=30), limit=10) == 0
        await conn.execute("UPDATE interlock.timer SET last_seen_at = now() - interval '31 days'")
        assert await timers.forget(conn, older_than=timedelta(days=30), limit=10) == 1
        assert await timers.list(conn) == []
