"""A hold inside the user's own transaction: it ends with it, and its fence never comes back."""

from __future__ import annotations

import asyncpg
import psycopg
import pytest

from interlock import Interlock, LockTaken
from interlock.errors import InvalidOption, InvalidSetting, UnsupportedConnection


@pytest.fixture
async def app(migrated):
    app = Interlock(migrated)
    async with app:
        yield app


@pytest.fixture
async def conn(migrated):
    conn = await asyncpg.connect(migrated)
    yield conn
    await conn.close()


async def test_it_is_held_until_the_transaction_ends_and_seen_by_leases_and_other_transactions(app, conn, migrated):
    other = await asyncpg.connect(migrated)
    async with conn.transaction():
        held = await app.locks.ahold_in(conn, "import")
        assert (held.name, held.slot) == ("import", 0)
        async with other.transaction():
            assert await app.locks.atry_hold_in(other, "import") is None
            with pytest.raises(LockTaken):
                await app.locks.ahold_in(other, "import")
        assert await app.locks.atry_hold("import") is None
    async with app.locks.hold("import") as lease:
        assert lease.fence > held.fence
        async with other.transaction():
            assert await app.locks.atry_hold_in(other, "import") is None
    await other.close()


async def test_a_rolled_back_hold_frees_the_slot_and_its_fence_does_not_come_back(app, conn):
    fences = []
    for _ in range(5):
        transaction = conn.transaction()
        await transaction.start()
        fences.append((await app.locks.ahold_in(conn, "import")).fence)
        await transaction.rollback()
    async with app.locks.hold("import") as lease:
        fences.append(lease.fence)
    assert fences == sorted(set(fences))


async def test_control_a_fence_counted_in_the_row_comes_back_after_a_rollback(app, conn):
    async with conn.transaction():
        await app.locks.ahold_in(conn, "import")
    fences = []
    for _ in range(2):
        transaction = conn.transaction()
        await transaction.start()
        fences.append(await conn.fetchval("UPDATE interlock.lock_slot SET fence = fence + 1 RETURNING fence"))
        await transaction.rollback()
    assert fences[0] == fences[1]


async def test_it_takes_any_of_n_slots_and_the_smaller_n_of_a_holder_binds(app, conn, migrated):
    others = [await asyncpg.connect(migrated) for _ in range(2)]
    async with app.locks.hold("import", slots=2), conn.transaction(), others[0].transaction():
        assert (await app.locks.ahold_in(conn, "import", slots=5)).slot < 2
        assert await app.locks.atry_hold_in(others[0], "import", slots=5) is None
    for other in others:
        await other.close()


async def test_it_works_after_its_rows_were_forgotten(app, conn):
    async with conn.transaction():
        await app.locks.ahold_in(conn, "import")
    await conn.execute("DELETE FROM interlock.lock_slot")
    async with conn.transaction():
        assert (await app.locks.ahold_in(conn, "import")).slot == 0


async def test_without_a_transaction_it_is_refused_because_it_would_end_at_once(app, conn):
    with pytest.raises(InvalidOption, match="open transaction"):
        await app.locks.ahold_in(conn, "import")


async def test_something_that_is_no_connection_is_refused(app):
    with pytest.raises(UnsupportedConnection):
        await app.locks.ahold_in(object(), "import")


async def test_another_lock_service_could_not_see_it_and_so_it_is_refused(conn, migrated):
    async with Interlock(migrated, lock_backend="memory") as app, conn.transaction():
        with pytest.raises(InvalidSetting):
            await app.locks.ahold_in(conn, "import")


async def test_an_async_psycopg_connection_holds_too(app, migrated):
    async with await psycopg.AsyncConnection.connect(migrated) as first:
        held = await app.locks.ahold_in(first, "import", slots=2)
        assert held.slot in (0, 1)
        async with app.locks.hold("import", slots=2) as lease:
            assert lease.slot != held.slot
            assert await app.locks.atry_hold("import", slots=2) is None


def test_a_blocking_connection_holds_too(migrated):
    with Interlock(migrated) as app, psycopg.connect(migrated) as first, psycopg.connect(migrated) as second:
        held = app.locks.hold_in(first, "import")
        assert app.locks.try_hold_in(second, "import") is None
        with pytest.raises(LockTaken):
            app.locks.hold_in(second, "import")
        second.rollback()
        first.rollback()
        assert app.locks.hold_in(second, "import").fence > held.fence
    with psycopg.connect(migrated, autocommit=True) as conn, Interlock(migrated) as app, pytest.raises(InvalidOption):
        app.locks.hold_in(conn, "import")
    from interlock.runtime.portal import portal

    portal.close()


async def test_one_transaction_may_take_its_slot_twice_and_each_time_with_a_fence_of_its_own(app, conn):
    async with conn.transaction():
        first, second = await app.locks.ahold_in(conn, "x"), await app.locks.ahold_in(conn, "x")
        assert (second.slot, second.fence > first.fence) == (first.slot, True)
        assert await app.locks.atry_hold("x") is None


async def test_what_was_taken_after_a_savepoint_is_given_back_with_it(app, conn):
    async with conn.transaction():
        savepoint = conn.transaction()
        await savepoint.start()
        held = await app.locks.ahold_in(conn, "x")
        await savepoint.rollback()
        async with app.locks.hold("x") as lease:
            assert lease.fence > held.fence
