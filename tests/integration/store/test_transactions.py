from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import asyncpg
import pytest

from interlock.store import database as database_module
from tests.harness.waiting import eventually


@pytest.fixture
async def two_rows(database, connect):
    conn = await connect(database)
    await conn.execute("CREATE TABLE pair (id int PRIMARY KEY, n int); INSERT INTO pair VALUES (1, 0), (2, 0)")
    return conn


async def cross_locks(door, log: list[str]) -> None:
    """Two units of work that lock two rows in opposite orders, and meet in between on their first attempt."""
    meet = [asyncio.Event(), asyncio.Event()]

    async def work(conn, me: int) -> None:
        log.append(f"attempt of {me}")
        await conn.execute("SET LOCAL deadlock_timeout = '50ms'")
        await conn.execute("UPDATE pair SET n = n + 1 WHERE id = $1", 1 + me)
        meet[me].set()
        await meet[1 - me].wait()
        await conn.execute("UPDATE pair SET n = n + 1 WHERE id = $1", 2 - me)

    await asyncio.gather(*(door.retrying(lambda conn, me=me: work(conn, me)) for me in (0, 1)))


async def test_the_victim_of_a_deadlock_starts_over_and_both_succeed(opened, database, two_rows):
    log: list[str] = []
    await cross_locks(opened(database), log)
    assert len(log) > 2
    assert await two_rows.fetchval("SELECT array_agg(n) FROM pair") == [2, 2]


async def test_control_without_retries_the_deadlock_surfaces(opened, database, two_rows, monkeypatch):
    monkeypatch.setattr(database_module, "CONFLICT_RETRIES", 1)
    with pytest.raises(asyncpg.DeadlockDetectedError):
        await cross_locks(opened(database), [])


async def test_another_error_is_not_tried_again(opened, database):
    attempts = []

    async def work(conn) -> None:
        attempts.append(1)
        await conn.execute("SELECT 1/0")

    with pytest.raises(asyncpg.DivisionByZeroError):
        await opened(database).retrying(work)
    assert attempts == [1]


async def test_a_transaction_that_raises_leaves_nothing(opened, database, two_rows):
    door = opened(database)

    async def delete_and_fail() -> None:
        async with door.transaction() as conn:
            await conn.execute("DELETE FROM pair")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await delete_and_fail()
    assert await two_rows.fetchval("SELECT count(*) FROM pair") == 2


STANDS_STILL = """
    import asyncio, sys, time
    from contextlib import asynccontextmanager
    from datetime import timedelta
    from interlock.store.database import Database
    from interlock.store.settings import StoreSettings
    from tests.harness.child import tell

    async def main():
        door = Database(sys.argv[1], StoreSettings(tick_idle_timeout=timedelta(seconds=float(sys.argv[3]))))

        @asynccontextmanager
        async def unlimited():
            async with door.connection() as conn, conn.transaction():
                yield conn

        kinds = {"tick": door.tick, "transaction": door.transaction, "unlimited": unlimited}
        async with kinds[sys.argv[2]]() as conn:
            await conn.execute("UPDATE pair SET n = 1 WHERE id = 1")
            tell("locked")
            time.sleep(60)

    asyncio.run(main())
"""


TWO_SECONDS = pytest.mark.parametrize(("kind", "tick_idle_timeout"), [("tick", 2.0), ("transaction", 0.2)])


async def row_is_free(conn) -> bool:
    return bool(await conn.fetch("SELECT id FROM pair WHERE id = 1 FOR UPDATE SKIP LOCKED"))


@TWO_SECONDS
async def test_what_a_process_that_stands_still_has_begun_is_ended_by_the_server(
    database, two_rows, fleet, kind, tick_idle_timeout
):
    process = fleet.start(STANDS_STILL, database, kind, tick_idle_timeout)
    await process.expect("locked")
    start = time.monotonic()
    process.stop()
    assert not await row_is_free(two_rows)
    await eventually(lambda: row_is_free(two_rows), 60)
    assert time.monotonic() - start < 20
    assert await two_rows.fetchval("SELECT n FROM pair WHERE id = 1") == 0


async def test_control_without_limits_it_keeps_its_locks_while_the_process_stands_still(database, two_rows, fleet):
    process = fleet.start(STANDS_STILL, database, "unlimited", 0.2)
    await process.expect("locked")
    process.stop()
    with pytest.raises(AssertionError):
        await eventually(lambda: row_is_free(two_rows), 4)


PREPARES = STANDS_STILL.replace('tell("locked")', 'await conn.prepare("SELECT 1 + 2"); tell("locked")')


@pytest.fixture
async def stopped_between(database, two_rows, fleet, kind, tick_idle_timeout):
    """What a process has begun that is stopped when it has prepared a statement and not yet executed it."""
    process = fleet.start(PREPARES, database, kind, tick_idle_timeout)
    await process.expect("locked")
    process.stop()
    assert not await row_is_free(two_rows)
    return process


@TWO_SECONDS
@pytest.mark.usefixtures("stopped_between")
async def test_what_stopped_between_preparing_and_executing_is_ended_by_those_who_live(
    opened, database, two_rows, tick_idle_timeout
):
    door = opened(database, tick_idle_timeout=timedelta(seconds=tick_idle_timeout))

    async def ended() -> int:
        async with door.tick() as conn:
            return await door.end_stalled_ticks(conn)

    assert await eventually(ended) == 1
    await eventually(lambda: row_is_free(two_rows))
    assert await two_rows.fetchval("SELECT n FROM pair WHERE id = 1") == 0


@TWO_SECONDS
@pytest.mark.usefixtures("stopped_between")
async def test_control_none_of_the_timeouts_of_postgresql_ends_it(two_rows):
    with pytest.raises(AssertionError):
        await eventually(lambda: row_is_free(two_rows), 4)


async def test_what_works_waits_or_is_not_ours_is_not_ended(opened, database, two_rows, connect):
    strict, door = opened(database, tick_idle_timeout=timedelta(milliseconds=1)), opened(database)
    stranger = await connect(database)
    async with (
        strict.connection() as judge,
        stranger.transaction(),
        door.connection() as plain,
        plain.transaction(),
        door.tick() as waiting,
    ):
        await stranger.prepare("SELECT 1 + 2")
        await plain.prepare("SELECT 1 + 2")
        busy = asyncio.create_task(sleep_in_a_tick(opened(database)))
        await eventually(lambda: two_rows.fetchval(SLEEPS))
        assert await strict.end_stalled_ticks(judge) == 0
        assert await waiting.fetchval("SELECT 1") == await plain.fetchval("SELECT 1") == 1
        assert await stranger.fetchval("SELECT 1") == 1
        await busy


SLEEPS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"


async def sleep_in_a_tick(door) -> None:
    async with door.tick() as conn:
        await conn.execute("SELECT pg_sleep(0.5)")


async def test_a_tick_ends_a_statement_that_takes_too_long_or_waits_too_long(opened, database, two_rows):
    door = opened(database, tick_statement_timeout=timedelta(seconds=0.2))
    with pytest.raises(asyncpg.QueryCanceledError):
        async with door.tick() as conn:
            await conn.execute("SELECT pg_sleep(20)")
    async with two_rows.transaction():
        await two_rows.execute("UPDATE pair SET n = 7")
        with pytest.raises((asyncpg.LockNotAvailableError, asyncpg.QueryCanceledError)):
            async with door.tick() as conn:
                await conn.execute("UPDATE pair SET n = 8")


async def test_the_driver_waits_for_as_long_as_a_statement_of_a_tick_may_take(opened, database, monkeypatch):
    monkeypatch.setattr(database_module, "COMMAND_TIMEOUT", 0.1)
    async with opened(database, tick_statement_timeout=timedelta(seconds=60)).tick() as conn:
        await conn.execute("SELECT pg_sleep(0.5)")


async def test_the_limits_of_a_tick_end_with_it(opened, database):
    door = opened(database, pool_size=1)
    names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "tcp_user_timeout")
    async with door.connection() as conn:
        before = [await conn.fetchval(f"SHOW {name}") for name in names]
    async with door.tick() as conn:
        assert [await conn.fetchval(f"SHOW {name}") for name in names[:3]] == ["10s", "10s", "3s"]
    async with door.connection() as conn:
        assert [await conn.fetchval(f"SHOW {name}") for name in names] == before
