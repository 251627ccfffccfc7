"""Hosts that disagree on N, on PostgreSQL: the smaller one binds, also for those who do not see each other yet."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
import pytest

from interlock.locks.settings import LockSettings
from interlock.locks.transaction import TransactionHolds
from interlock.model.lease import Grant, Refusal
from interlock.store.database import Database
from interlock.store.lock_slot import LockSlots
from interlock.store.settings import StoreSettings
from interlock.store.sql import Catalog
from tests.harness.unguarded import take_guard_off
from tests.harness.waiting import eventually
from tests.integration.locks.conftest import request

GUARD = {"lock_slot/acquire": "      and slots = :slots::integer\n"}
STANDING = "SELECT count(*) AS holders, min(slots) AS smallest FROM interlock.lock_slot WHERE expires_at > now()"
NOTHING = timedelta(0)


@pytest.fixture
async def conn(migrated):
    conn = await asyncpg.connect(migrated)
    yield conn
    await conn.close()


@pytest.fixture
async def database(migrated):
    database = Database(migrated, StoreSettings())
    yield database
    await database.close()


@pytest.fixture
def hold_in(database):
    """Takes a slot in a transaction of the user."""

    async def opened() -> Database:
        return database

    return TransactionHolds(LockSettings(), "test", opened).take


@asynccontextmanager
async def somebody_takes_a_slot(dsn: str, slots: int, start: int):
    """One who has taken it and whom nobody can see yet."""
    conn = await asyncpg.connect(dsn)
    async with conn.transaction():
        assert isinstance(
            await LockSlots(Catalog("interlock"), "test").acquire(conn, request(slots=slots, start=start)), Grant
        )
        yield
    await conn.close()


async def narrow_comes_while_wide_takes(locks, dsn: str) -> Grant | Refusal:
    """Two of five are held for certain, a third is being taken: may one come who knows of three only?"""
    for start in (3, 4):
        await locks.acquire(request(slots=5, start=start))
    async with somebody_takes_a_slot(dsn, slots=5, start=0):
        return await locks.acquire(request(slots=3, start=1, owner="narrow"))


async def test_whoever_wants_fewer_counts_those_who_take_a_slot_in_the_same_instant(open_postgres, migrated, conn):
    assert isinstance(await narrow_comes_while_wide_takes(open_postgres(migrated), migrated), Refusal)
    assert tuple(await conn.fetchrow(STANDING)) == (3, 5)


async def test_control_without_an_offer_to_one_n_more_hold_than_the_smaller_n(
    open_postgres, migrated, conn, monkeypatch
):
    take_guard_off(monkeypatch, GUARD)
    assert isinstance(await narrow_comes_while_wide_takes(open_postgres(migrated), migrated), Grant)
    assert await conn.fetchval("SELECT count(*) FROM interlock.lock_slot WHERE expires_at > now()") == 4


async def test_a_hold_in_a_transaction_binds_those_who_want_more_and_is_named(open_postgres, migrated, conn, hold_in):
    locks = open_postgres(migrated)
    async with conn.transaction():
        assert await hold_in(conn, "x", 2) is not None
        grant = await locks.acquire(request(slots=5, start=4))
        assert (grant.slot < 2, grant.peers.disagreeing(5)) == (True, (2, "a transaction"))
        refused = await locks.acquire(request(slots=5))
        assert isinstance(refused, Refusal)
    assert isinstance(await locks.acquire(request(slots=5)), Grant)


async def test_a_hold_in_a_transaction_counts_for_those_who_want_fewer(open_postgres, migrated, conn, hold_in):
    locks = open_postgres(migrated)
    async with conn.transaction():
        assert (await hold_in(conn, "x", 5)) is not None
        assert isinstance(await locks.acquire(request(slots=1)), Refusal)
        assert isinstance(await locks.acquire(request(slots=2)), Grant)
        assert isinstance(await locks.acquire(request(slots=2)), Refusal)


async def test_whoever_wants_a_new_number_does_not_wait_for_a_hold_in_a_transaction(
    open_postgres, migrated, conn, hold_in
):
    async with conn.transaction():
        await hold_in(conn, "x", 1)
        async with asyncio.timeout(60):
            assert isinstance(await open_postgres(migrated).acquire(request(slots=3)), Refusal)


async def test_two_who_make_a_name_at_once_make_it_for_one_number(migrated, conn, database):
    slots = LockSlots(database.sql, "test")

    async def make(number: int) -> None:
        async with database.connection() as own:
            await slots.prepare(own, "x", number)

    async with conn.transaction():
        await slots.prepare(conn, "x", 3)
        late = asyncio.create_task(make(5))
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        async with database.connection() as other:
            await eventually(lambda: other.fetchval(waiting), 60, "one who waits for the other")
    await late
    assert [row["slots"] for row in await conn.fetch("SELECT slots FROM interlock.lock_slot")] == [3, 3, 3]


async def contend(locks, slots: int, rounds: int) -> int:
    taken = 0
    for _ in range(rounds):
        asked = request(slots=slots, start=random.randrange(slots))
        if isinstance(await locks.acquire(asked), Grant):
            taken += 1
            await asyncio.sleep(random.random() / 200)
            await locks.release(asked.name, asked.token, NOTHING)
    return taken


async def watched_at_every_instant(locks, conn, rounds: int) -> int:
    async with asyncio.TaskGroup() as group:
        work = [group.create_task(contend(locks, slots, rounds)) for slots in (2, 3, 5) for _ in range(4)]
        while not all(task.done() for task in work):
            holders, smallest = await conn.fetchrow(STANDING)
            assert holders <= (smallest or 0), "more hold than the smallest N of those who do"
            await asyncio.sleep(0)
    return sum(task.result() for task in work)


async def test_however_they_race_no_more_hold_than_the_smallest_number_of_those_who_do(open_postgres, migrated, conn):
    assert await watched_at_every_instant(open_postgres(migrated), conn, 25)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_however_long_they_race_no_more_hold_than_the_smallest_number(open_postgres, migrated, conn):
    assert await watched_at_every_instant(open_postgres(migrated), conn, 1000)
