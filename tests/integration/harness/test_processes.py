"""Processes of a fleet: told what to run, held at failpoints, and honest about their end."""

from __future__ import annotations

import asyncio
import time

import asyncpg
import pytest

from tests.harness import databases
from tests.harness.barrier import Barrier, armed
from tests.harness.child import tell
from tests.harness.waiting import NeverHappenedError


async def reach_a_failpoint(number: int) -> None:
    from interlock import failpoints

    tell("arrived", number=number)
    await failpoints.reach("harness.middle")
    tell("passed", number=number)


async def test_a_child_stays_at_its_failpoint_until_it_is_released(fleet, tmp_path):
    barrier = Barrier(tmp_path, "harness.middle")
    child = fleet.start("tests.integration.harness.test_processes:reach_a_failpoint", 7, env=armed(barrier))
    assert (await child.expect("arrived"))["number"] == 7
    await barrier.reached()
    assert child.heard("passed") == []
    barrier.release()
    await child.expect("passed")
    assert await child.wait() == 0


async def test_a_child_dies_at_a_failpoint_that_says_exit(fleet):
    child = fleet.start(
        "tests.integration.harness.test_processes:reach_a_failpoint", 7, env=armed(exit_at=["harness.middle"])
    )
    assert await child.wait() == 137
    assert child.heard("passed") == []


async def test_a_message_that_cannot_come_any_more_is_not_waited_for(fleet):
    child = fleet.start("import sys; sys.exit('no such thing')")
    began = time.monotonic()
    with pytest.raises(NeverHappenedError, match=r"(?s)ended with 1.*no such thing"):
        await child.expect("ready", timeout=30)
    assert time.monotonic() - began < 15


async def test_a_delayed_line_is_late_in_both_directions(database, proxy_to):
    proxy = proxy_to(database)
    conn = await asyncpg.connect(proxy.dsn(database))
    try:
        proxy.delay(0.1)
        began = time.monotonic()
        assert await conn.fetchval("SELECT 1") == 1
        assert time.monotonic() - began >= 0.2
    finally:
        await conn.close()


async def test_a_connection_that_was_half_open_goes_on_when_healed(database, proxy_to):
    proxy = proxy_to(database)
    conn = await asyncpg.connect(proxy.dsn(database))
    try:
        proxy.half_open()
        answer = asyncio.ensure_future(conn.fetchval("SELECT 1"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(answer), 0.2)
        proxy.heal()
        assert await asyncio.wait_for(answer, 10) == 1
    finally:
        await conn.close()


async def test_processes_that_need_the_template_at_once_build_it_once(postgres_dsn, monkeypatch):
    monkeypatch.setattr(databases, "TEMPLATE", "harness_template")
    monkeypatch.setattr(databases, "_with_template", set())
    try:
        dsns = await asyncio.gather(*(asyncio.to_thread(databases.create_migrated, postgres_dsn) for _ in range(4)))
        assert len(set(dsns)) == 4
        count = "SELECT count(*) FROM pg_tables WHERE schemaname = 'interlock'"
        assert all(databases.fetch_value(dsn, count) > 0 for dsn in dsns)
        for dsn in dsns:
            databases.drop(postgres_dsn, dsn)
    finally:
        databases.execute(postgres_dsn, "DROP DATABASE IF EXISTS harness_template")
