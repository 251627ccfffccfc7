"""A work queue in the hands of a test: groups, entries, active executions, and dispatchers without workers."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from interlock.dispatch.dispatcher import JobDispatcher
from interlock.dispatch.settings import DispatchSettings
from interlock.store.database import Database
from interlock.store.settings import StoreSettings

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    import asyncpg

PATIENT = timedelta(minutes=1)  # so that a busy machine does not end a tick that a test holds
ENTRY = """
INSERT INTO interlock.work_queue (kind, train, input, attempt, max_attempts, max_crashes, retry_delay, max_retry_delay,
    retry_backoff, group_id, group_priority, priority, created_at, scheduled_at, ready)
SELECT 'adhoc', $2, '{}', 1, 3, 3, '1 s', '1 h', 2, g.id, g.priority, $3, coalesce($5, clock_timestamp()),
    clock_timestamp() + $6 * interval '1 s', $6 = 0
FROM interlock.manifest_group g, generate_series(1, $4) WHERE g.name = $1
RETURNING id
"""
ACTIVE = """
INSERT INTO interlock.execution (state, entry_id, first_entry_id, kind, train, input, group_id, attempt, crashes,
    max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff)
SELECT 'pending', 0, 0, 'adhoc', $2, '{}', g.id, 1, 0, 3, 3, '1 s', '1 h', 2
FROM interlock.manifest_group g, generate_series(1, $3) WHERE g.name = $1
"""
GROUP = """
INSERT INTO interlock.manifest_group (name, priority, max_active_jobs, enabled) VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO UPDATE SET priority = $2, max_active_jobs = $3, enabled = $4
"""


class Hands:
    """A worker that takes nothing, with as many free slots as the test says."""

    def __init__(self, trains=("work",), free: int = 100, limits=()) -> None:
        self.trains, self.free, self._limits, self.claimed = dict.fromkeys(trains), free, limits, 0

    def limits(self):
        return self._limits


class Local:
    """Remembers what it was told after the commit."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    async def committed(self, dispatched) -> None:
        self.told += dispatched


class Ramp:
    def __init__(self, dsn: str, conn: asyncpg.Connection, stack: AsyncExitStack) -> None:
        self.dsn, self.conn, self._stack = dsn, conn, stack
        self.events: list = []
        self.local = Local()

    def door(self, idle: timedelta = PATIENT) -> Database:
        database = Database(self.dsn, StoreSettings(tick_idle_timeout=idle))
        self._stack.push_async_callback(database.close)
        return database

    def dispatcher(
        self, *, hands=None, door: Database | None = None, remote=(), elsewhere=(), server=lambda: None, **settings
    ):
        dispatcher = JobDispatcher(
            door or self.door(),
            DispatchSettings(**settings),
            hands=hands or Hands(),
            local=self.local,
            remote=remote,
            elsewhere=elsewhere,
            server=server,
            emit=self.events.append,
        )
        self._stack.push_async_callback(dispatcher.close)
        return dispatcher

    async def group(self, name: str, *, priority: int = 0, cap: int | None = None, enabled: bool = True) -> None:
        await self.conn.execute(GROUP, name, priority, cap, enabled)

    async def queue(
        self, count: int = 1, *, group="default", train="work", priority=0, created_at=None, delay=0.0
    ) -> list[int]:
        rows = await self.conn.fetch(ENTRY, group, train, priority, count, created_at, delay)
        return [row[0] for row in rows]

    async def active(self, count: int, *, group="default", train="work") -> None:
        await self.conn.execute(ACTIVE, group, train, count)

    async def end_all(self) -> None:
        await self.conn.execute(
            "UPDATE interlock.execution SET state = 'cancelled', ended_at = now() WHERE ended_at IS NULL"
        )
        await self.conn.execute("DELETE FROM interlock.background_job")

    async def count_active(self, group: str | None = None) -> int:
        return await self.conn.fetchval(
            "SELECT count(*) FROM interlock.execution e JOIN interlock.manifest_group g ON g.id = e.group_id"
            " WHERE ended_at IS NULL AND ($1::text IS NULL OR g.name = $1)",
            group,
        )

    async def entry(self, id: int):  # noqa: A002  the row's own word
        return await self.conn.fetchrow("SELECT * FROM interlock.work_queue WHERE id = $1", id)

    async def states(self) -> dict[int, str]:
        rows = await self.conn.fetch("SELECT id, state FROM interlock.work_queue ORDER BY id")
        return {row["id"]: row["state"] for row in rows}

    def told(self, kind: type) -> list:
        return [event for event in self.events if isinstance(event, kind)]
