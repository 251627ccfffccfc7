"""Rows of servers that ended long ago go; those of the living stay, however old."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest

from interlock.runtime.loop import IMMEDIATELY
from interlock.store.server import Servers
from interlock.upkeep.retention import Retention
from interlock.upkeep.settings import UpkeepSettings
from tests.integration.runtime.conftest import SHORT

KEPT = timedelta(days=30)


@pytest.fixture
def server(house):
    """Writes the row of a server in this state, as old as said."""

    async def write(state: str, days: float) -> str:
        database, id = house.door(), uuid4()  # noqa: A001  the row's own word
        servers = Servers(database.sql)
        async with database.connection() as conn:
            await servers.register(conn, id, house.keeper(state).profile, SHORT["lease"])
            if state in ("draining", "gone"):
                await servers.drain_if_alive(conn, id)
            if state == "gone":
                await servers.leave_if_draining(conn, id)
            if state == "lost":
                await conn.execute("UPDATE interlock.server SET state = 'lost', ended_at = now() WHERE id = $1", id)
            await conn.execute(
                "UPDATE interlock.server SET started_at = now() - $2::interval, renewed_at = now() - $2::interval,"
                " lease_until = now() - $2::interval WHERE id = $1",
                id,
                timedelta(days=days),
            )
            await conn.execute(
                "UPDATE interlock.server SET ended_at = now() - $2::interval WHERE id = $1 AND ended_at IS NOT NULL",
                id,
                timedelta(days=days),
            )
        return id

    return write


def retention(house, **settings) -> Retention:
    return Retention(house.door(), UpkeepSettings(execution_retention=KEPT, **settings))


async def test_what_ended_long_ago_goes_and_the_living_never(house, server):
    for state in ("gone", "lost"):
        await server(state, 31)
    kept = {await server(state, 29) for state in ("gone", "lost")}
    kept |= {await server(state, 400) for state in ("alive", "draining")}
    upkeep = retention(house)
    assert await upkeep.tick() == UpkeepSettings().cleanup_interval
    assert set(await house.states()) == kept


async def test_a_full_batch_is_followed_by_the_next_at_once(house, server):
    for _ in range(3):
        await server("gone", 31)
    upkeep = retention(house, cleanup_batch=2)
    assert await upkeep.tick() == IMMEDIATELY
    assert len(await house.states()) == 1
    assert await upkeep.tick() == UpkeepSettings().cleanup_interval
    assert await house.states() == {}


async def test_two_servers_that_clean_up_at_once_both_succeed(house, server):
    for _ in range(20):
        await server("gone", 31)
    first, second = retention(house, cleanup_batch=3), retention(house, cleanup_batch=3)

    async def clean(upkeep: Retention) -> None:
        while await upkeep.tick() == IMMEDIATELY:
            pass

    await asyncio.gather(clean(first), clean(second))
    await clean(first)
    assert await house.states() == {}
