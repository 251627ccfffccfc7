"""A server that stands still while it is told what it got: PostgreSQL does not wait for it with the entries locked."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import asyncpg
import pytest

from interlock.model.execution import Reservation
from interlock.model.server import ServerProfile
from interlock.store.database import Database
from interlock.store.line import Line
from interlock.store.server import Servers
from interlock.store.settings import StoreSettings
from interlock.store.taking import Taking
from tests.harness.proxy import TcpProxy
from tests.harness.unguarded import take_guard_off
from tests.harness.waiting import NeverHappenedError, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

WAITS_FOR = "SELECT wait_event_type || ' ' || wait_event FROM pg_stat_activity WHERE pid = $1"
LARGE = "UPDATE interlock.work_queue SET input = to_jsonb(repeat('x', 900000))"
FREE = "SELECT count(*) FROM (SELECT FROM interlock.work_queue WHERE state = 'queued' FOR UPDATE SKIP LOCKED) entry"


@asynccontextmanager
async def stuck_in_its_answer(ramp, dsn: str) -> AsyncIterator[None]:
    """A dispatch in one statement whose answer is more than the line holds, and that nobody reads."""
    with TcpProxy.to(dsn) as proxy:
        database = Database(proxy.dsn(dsn), StoreSettings(tick_idle_timeout=timedelta(seconds=0.1)))
        line, taking = Line(database, "dispatch", by_key=True), Taking(database.sql)
        server = uuid4()
        profile = ServerProfile(name="s", host="h", pid=1, version="0")
        await Servers(database.sql).register(ramp.conn, server, profile, timedelta(minutes=5))
        async with line.connection() as conn:
            pid = conn.get_server_pid()
            reservation = Reservation(server, "h", uuid4(), 40)
            await taking.attempt(conn, ["work"], reservation, now=None)  # from now on it is only to be executed
            await ramp.queue(40)
            await ramp.conn.execute(LARGE)
            async with held_up(dsn):
                attempt = asyncio.create_task(taking.attempt(conn, ["work"], reservation, now=None))
                await waits_for(ramp, pid, "Lock relation")
                proxy.half_open()
            await waits_for(ramp, pid, "Client ClientWrite")
            try:
                yield
            finally:
                proxy.cut()
                await asyncio.wait({attempt})
                attempt.exception()


@asynccontextmanager
async def held_up(dsn: str) -> AsyncIterator[None]:
    conn = await asyncpg.connect(dsn)
    try:
        async with conn.transaction():
            await conn.execute("LOCK TABLE interlock.manifest_group IN ACCESS EXCLUSIVE MODE")
            yield
    finally:
        await conn.close()


async def waits_for(ramp, pid: int, event: str) -> None:
    async def is_there() -> bool:
        return await ramp.conn.fetchval(WAITS_FOR, pid) == event

    await eventually(is_there, 60, event)


async def test_what_a_server_locked_that_does_not_read_its_answer_does_not_stay_locked(ramp, migrated):
    async with stuck_in_its_answer(ramp, migrated):
        assert await eventually(lambda: ramp.conn.fetchval(FREE), 60) == 40


async def test_control_without_the_limit_on_the_line_they_stay_locked(ramp, migrated, monkeypatch):
    take_guard_off(
        monkeypatch, {"session/by_key": "set_config('tcp_user_timeout', :idle_timeout, false)"}, ":idle_timeout::text"
    )
    async with stuck_in_its_answer(ramp, migrated):
        with pytest.raises(NeverHappenedError):
            await eventually(lambda: ramp.conn.fetchval(FREE), 3)
