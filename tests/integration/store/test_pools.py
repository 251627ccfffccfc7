"""A pool belongs to one process and one event loop."""

from __future__ import annotations

import asyncio
import sys
import textwrap
import threading

import pytest

from interlock.errors import DatabaseUnavailable
from interlock.runtime.portal import Portal
from interlock.store.database import Database
from interlock.store.settings import StoreSettings
from tests.harness.waiting import eventually

FORK = """
    import asyncio, os, sys
    from interlock.store.database import Database
    from interlock.store.settings import StoreSettings
    from tests.harness.child import tell

    door = Database(sys.argv[1], StoreSettings())
    loop = asyncio.new_event_loop()

    async def backend():
        async with door.connection() as conn:
            return await conn.fetchval("select pg_backend_pid()")

    async def close():
        await door.close()

    before = loop.run_until_complete(backend())
    if (child := os.fork()) == 0:
        asyncio.set_event_loop(None)
        child_loop = asyncio.new_event_loop()
        tell("child", backend=child_loop.run_until_complete(backend()))
        child_loop.run_until_complete(close())
        os._exit(0)
    _, status = os.waitpid(child, 0)
    tell("parent", before=before, after=loop.run_until_complete(backend()), status=status)
    loop.run_until_complete(close())
    loop.close()
"""


async def test_a_forked_child_opens_its_own_pool_and_the_parents_connection_still_works(fleet, database):
    process = fleet.start(FORK, database)
    child, parent = await process.expect("child"), await process.expect("parent")
    assert child["backend"] != parent["before"] == parent["after"]
    assert parent["status"] == 0
    assert await process.wait() == 0


def test_each_event_loop_has_its_own_pool(database):
    door = Database(database, StoreSettings())
    meet = threading.Barrier(2)
    backends: list[set[int]] = []

    async def use() -> None:
        async with door.connection() as conn:
            mine = {await conn.fetchval("SELECT pg_backend_pid()")}
            await asyncio.to_thread(meet.wait, 10)
        async with door.connection() as conn:
            backends.append(mine | {await conn.fetchval("SELECT pg_backend_pid()")})
            await asyncio.to_thread(meet.wait, 10)
        await door.close()

    threads = [threading.Thread(target=lambda: asyncio.run(use())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(backends) == 2
    assert len(backends[0]) == len(backends[1]) == 1
    assert backends[0].isdisjoint(backends[1])


async def test_many_first_users_share_one_pool(opened, database, connect):
    door = opened(database, pool_size=2)

    async def backend() -> int:
        async with door.connection() as conn:
            return await conn.fetchval("SELECT pg_backend_pid()")

    assert len(set(await asyncio.gather(*(backend() for _ in range(20))))) <= 2


async def test_a_burst_waits_for_a_connection_as_long_as_others_are_served(opened, database, monkeypatch):
    monkeypatch.setattr("interlock.store.database.CONNECT_TIMEOUT", 1.0)
    door = opened(database, pool_size=1)

    async def use() -> None:
        async with door.connection() as conn:
            await conn.execute("SELECT pg_sleep(0.2)")

    await asyncio.gather(*(use() for _ in range(7)))


async def test_a_burst_that_is_too_large_is_told_of_the_size_of_the_pool(opened, database, monkeypatch):
    monkeypatch.setattr("interlock.store.database.CONNECT_TIMEOUT", 0.1)
    monkeypatch.setattr("interlock.store.database.COMMAND_TIMEOUT", 0.0)
    door = opened(database, pool_size=1)
    async with door.connection():
        waiting = asyncio.create_task(door.connection().__aenter__())
        while not waiting.done():
            door._served += 1
            await asyncio.sleep(0.01)
        with pytest.raises(DatabaseUnavailable, match=r"each of the 1 connections .* \(pool_size\) was in use"):
            await waiting


async def test_control_where_nobody_is_served_whoever_waits_hears_of_it_soon(opened, database, monkeypatch):
    door = opened(database, pool_size=1)
    async with door.connection():
        monkeypatch.setattr("interlock.store.database.CONNECT_TIMEOUT", 0.1)
        with pytest.raises(DatabaseUnavailable):
            await asyncio.gather(*(door.connection().__aenter__() for _ in range(3)))


MANY_LOOPS = """
    import asyncio, gc, sys
    from interlock.store.database import Database
    from interlock.store.settings import StoreSettings
    from tests.harness.child import tell

    door = Database(sys.argv[1], StoreSettings())

    async def use():
        async with door.connection() as conn:
            await conn.fetchval("select 1")

    for _ in range(5):
        asyncio.run(use())
    gc.collect()
    tell("used")
    sys.stdin.read()
"""


async def test_event_loops_that_ended_without_closing_leave_at_most_the_last_connection(fleet, database, connect):
    watcher = await connect(database)
    process = fleet.command(sys.executable, "-c", textwrap.dedent(MANY_LOOPS), database, listens=True)
    await process.expect("used")

    async def at_most_the_last() -> bool:
        return await watcher.fetchval(
            "SELECT count(*) <= 1 FROM pg_stat_activity"
            " WHERE application_name = 'interlock' AND datname = current_database()"
        )

    await eventually(at_most_the_last, 60, "the connections of ended loops are gone")


async def test_the_door_can_be_used_again_after_it_was_closed(opened, database):
    door = opened(database)
    for _ in range(2):
        async with door.connection() as conn:
            assert await conn.fetchval("SELECT 1") == 1
        await door.close()


async def test_whoever_closes_the_door_closes_the_pools_of_other_event_loops_too(opened, database, connect):
    door, watcher, portal = opened(database), await connect(database), Portal()

    async def use() -> None:
        async with door.connection() as conn:
            await conn.fetchval("SELECT 1")

    async def nobody_is_left() -> bool:
        return await watcher.fetchval(
            "SELECT count(*) = 0 FROM pg_stat_activity"
            " WHERE application_name = 'interlock' AND datname = current_database()"
        )

    await asyncio.to_thread(portal.call, use)
    assert not await nobody_is_left()
    await door.close()
    await eventually(nobody_is_left, 20, "the end of every connection")
    await asyncio.to_thread(portal.call, use)
    await door.close()
    await asyncio.to_thread(portal.close)
