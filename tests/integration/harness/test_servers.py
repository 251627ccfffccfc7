"""The real servers of the tests: shared, private, and guarded against undeclared moves."""

from __future__ import annotations

import asyncpg
import pytest
import redis

from tests.harness.moves import guard_table
from tests.harness.waiting import NeverHappenedError, eventually


async def fetch(dsn: str, sql: str):
    conn = await asyncpg.connect(dsn, timeout=60)
    try:
        return await conn.fetchval(sql)
    finally:
        await conn.close()


async def test_a_test_database_is_empty_and_its_server_takes_a_fleet(database):
    assert await fetch(database, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
    assert await fetch(database, "SHOW max_connections") == "300"
    assert await fetch(database, "SHOW fsync") == "off"


async def test_an_undeclared_move_is_refused_and_a_declared_one_is_not(database):
    conn = await asyncpg.connect(database)
    try:
        await conn.execute("CREATE TABLE light (state text); INSERT INTO light VALUES ('red')")
        await guard_table(conn, "public", "light", {"red": {"green"}, "green": frozenset()})
        await conn.execute("UPDATE light SET state = 'red'")
        await conn.execute("UPDATE light SET state = 'green'")
        with pytest.raises(asyncpg.RaiseError, match="undeclared move of light: green -> red"):
            await conn.execute("UPDATE light SET state = 'red'")
    finally:
        await conn.close()


async def test_a_private_server_keeps_commits_through_a_power_cut(own_postgres):
    await fetch(own_postgres.dsn, "CREATE TABLE kept AS SELECT 7 AS n")
    port = own_postgres.port
    own_postgres.stop("immediate")
    with pytest.raises(OSError):
        await fetch(own_postgres.dsn, "SELECT 1")
    own_postgres.start()
    assert own_postgres.port == port
    assert await fetch(own_postgres.dsn, "SHOW fsync") == "on"
    assert await fetch(own_postgres.dsn, "SELECT n FROM kept") == 7


async def test_a_cut_line_refuses_a_half_open_one_is_silent_and_a_healed_one_serves(database, proxy_to):
    proxy = proxy_to(database)
    dsn = proxy.dsn(database)
    assert await fetch(dsn, "SELECT 1") == 1
    proxy.cut()
    with pytest.raises(OSError):
        await fetch(dsn, "SELECT 1")
    proxy.heal()
    proxy.half_open()
    with pytest.raises(TimeoutError):
        await asyncpg.connect(dsn, timeout=0.3)
    proxy.heal()
    assert await fetch(dsn, "SELECT 1") == 1


async def test_a_stopped_process_is_silent_until_continued_and_a_killed_one_is_gone(fleet):
    code = """
        import time
        from tests.harness.child import tell
        while True:
            tell("beat"); time.sleep(0.01)
    """
    one, two = fleet.start_many(2, code)
    await one.expect("beat")
    one.stop()
    await eventually(lambda: two.heard("beat"), what="the other process goes on")
    drained = len(one.heard("beat"))
    with pytest.raises(NeverHappenedError):
        await eventually(lambda: len(one.heard("beat")) > drained + 5, timeout=0.3)
    one.cont()
    await eventually(lambda: len(one.heard("beat")) > drained + 5)
    two.kill()
    assert two.returncode == -9


@pytest.mark.parametrize("turn", ["first", "second"])
def test_a_valkey_database_is_empty_in_every_test(valkey_url, turn):
    with redis.Redis.from_url(valkey_url) as client:
        assert client.dbsize() == 0
        client.set("left behind by", turn)
        assert client.dbsize() == 1
