"""However many want a slot at once, they do not use up the connections that the database allows."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from interlock.locks.postgres import MOST_CONNECTIONS
from interlock.model.lease import Grant
from interlock.store.database import Database
from tests.integration.locks.conftest import request

MANY = 60


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """What connections were opened for."""
    purposes: list[str] = []
    connect = Database.connect

    async def note(database, purpose):
        purposes.append(purpose)
        return await connect(database, purpose)

    monkeypatch.setattr(Database, "connect", note)
    return purposes


async def take_many(locks) -> list[Grant]:
    return await asyncio.gather(*(locks.acquire(request(f"x{number}")) for number in range(MANY)))


async def test_many_at_once_share_a_few_connections(migrated, open_postgres, opened):
    grants = await take_many(open_postgres(migrated))
    assert all(isinstance(grant, Grant) for grant in grants)
    assert 1 <= len(opened) <= MOST_CONNECTIONS


async def test_control_without_turns_they_open_many(migrated, open_postgres, opened, monkeypatch):
    monkeypatch.setattr("interlock.locks.postgres.MOST_CONNECTIONS", MANY)
    await take_many(open_postgres(migrated))
    assert len(opened) > MOST_CONNECTIONS


async def test_whoever_goes_away_in_the_middle_keeps_nobody_from_a_turn(migrated, open_postgres):
    """A statement that waits holds its turn until its caller gives up."""
    locks = open_postgres(migrated)
    await locks.acquire(request())
    conn = await asyncpg.connect(migrated)
    async with conn.transaction():
        await conn.execute("LOCK TABLE interlock.lock_slot IN ACCESS EXCLUSIVE MODE")
        waiting = [asyncio.create_task(locks.acquire(request(f"x{number}"))) for number in range(MANY)]
        await asyncio.sleep(0.1)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    await conn.close()
    assert isinstance(await locks.acquire(request("y")), Grant)
