"""A database that cannot be reached: one typed error, soon, and never a password in it."""

from __future__ import annotations

import asyncio
import time
import traceback

import pytest

from interlock.errors import DatabaseUnavailable
from tests.harness.databases import with_database
from tests.harness.ports import free_port

SOON = 6.5


async def pooled(database) -> None:
    async with database.connection():
        pass


async def alone(database) -> None:
    await database.connect("test")


async def refused(database) -> str:
    """What the user sees of each way in, tracebacks included."""
    seen = ""
    for way_in in (pooled, alone):
        start = time.monotonic()
        with pytest.raises(DatabaseUnavailable) as error:
            await way_in(database)
        assert time.monotonic() - start < SOON
        seen += "".join(traceback.format_exception(error.value))
    return seen


async def test_a_port_where_nobody_listens(opened):
    seen = await refused(opened(f"postgresql://ada:hush-hush@127.0.0.1:{free_port()}/app"))
    assert "no database at 127.0.0.1:" in seen
    assert "hush-hush" not in seen


async def test_a_wrong_password(opened, own_postgres):
    dsn = own_postgres.dsn.replace(own_postgres.dsn.split(":")[2].split("@")[0], "hush-hush")
    seen = await refused(opened(dsn))
    assert "password authentication failed" in seen
    assert "hush-hush" not in seen


async def test_an_unknown_database(opened, database):
    assert 'database "nowhere" does not exist' in await refused(opened(with_database(database, "nowhere")))


@pytest.mark.parametrize("way_in", [pooled, alone])
async def test_a_line_that_accepts_and_says_nothing(opened, database, proxy_to, way_in):
    proxy = proxy_to(database)
    proxy.half_open()
    start = time.monotonic()
    with pytest.raises(DatabaseUnavailable):
        await way_in(opened(proxy.dsn(database)))
    assert time.monotonic() - start < SOON


async def test_who_is_cancelled_on_a_line_that_went_silent_does_not_wait_for_the_rollback(opened, database, proxy_to):
    proxy, began, is_silent = proxy_to(database), asyncio.Event(), asyncio.Event()
    door = opened(proxy.dsn(database))

    async def work() -> None:
        async with door.transaction() as conn:
            began.set()
            await is_silent.wait()
            await conn.execute("SELECT 1")

    working = asyncio.create_task(work())
    await began.wait()
    proxy.half_open()
    is_silent.set()
    await asyncio.sleep(0)
    working.cancel()
    await asyncio.wait({working}, timeout=20)  # the driver's own limit is 35 seconds
    assert working.cancelled()


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://ada:hush#hush@127.0.0.1/app",
        "postgresql://ada:hush/hush@127.0.0.1/app",
        "postgresql://ada:hush?hush@127.0.0.1/app",
        "host=127.0.0.1 user=ada password=hush",
    ],
)
async def test_an_address_that_cannot_be_read(opened, dsn):
    seen = await refused(opened(dsn))
    assert "percent-encoded" in seen
    assert "hush" not in seen


async def test_a_database_that_comes_up_later_is_reached_without_a_restart(opened, database, proxy_to):
    proxy = proxy_to(database)
    proxy.cut()
    door = opened(proxy.dsn(database))
    await refused(door)
    proxy.heal()
    async with door.connection() as conn:
        assert await conn.fetchval("SELECT 1") == 1
