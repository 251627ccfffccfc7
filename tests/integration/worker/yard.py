"""Dispatched work written by hand, so that a worker can be tested without a dispatcher."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from uuid import UUID

    import asyncpg

ENTRY = """
INSERT INTO interlock.work_queue (state, kind, train, input, manifest_id, fire_key, attempt, crashes, max_attempts,
    max_crashes, retry_delay, max_retry_delay, retry_backoff, timeout, group_id, group_priority, priority, ready,
    left_at, key, key_held)
SELECT 'dispatched', $1, $2, $3, $4, $5, $6, $7, $8, $9, interval '1 s', interval '10 s', 2, $10::interval, g.id,
    g.priority, $11, true, clock_timestamp(), $12::text, $12::text IS NOT NULL
FROM interlock.manifest_group g WHERE g.name = 'default'
RETURNING id
"""
EXECUTION = """
INSERT INTO interlock.execution (entry_id, first_entry_id, kind, train, input, manifest_id, fire_key, group_id, attempt,
    crashes, max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, timeout)
SELECT id, coalesce(first_entry_id, id), kind, train, input, manifest_id, fire_key, group_id, attempt, crashes,
    max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, timeout
FROM interlock.work_queue WHERE id = $1
RETURNING id
"""
JOB = """
INSERT INTO interlock.background_job (execution_id, train, group_priority, priority, created_at, entry_id)
SELECT $1, train, group_priority, priority, created_at, id FROM interlock.work_queue WHERE id = $2
"""
MANIFEST = """
INSERT INTO interlock.manifest (external_id, origin, train, input, group_id, schedule_kind, schedule, misfire,
    misfire_threshold, parent_id, planned_at, enabled)
SELECT $1, 'runtime', $2, '{}', g.id, $3, '{}', 'fire_once', interval '1 min', $4, $5, $6
FROM interlock.manifest_group g WHERE g.name = 'default'
RETURNING id
"""


class Yard:
    def __init__(self, conn: asyncpg.Connection) -> None:
        self.conn = conn

    async def dispatch(
        self,
        train: str = "work",
        input: Any = None,  # noqa: A002  the column's own word
        *,
        kind: str = "adhoc",
        manifest: int | None = None,
        fire_key: str | None = None,
        attempt: int = 1,
        crashes: int = 0,
        max_attempts: int = 3,
        max_crashes: int = 3,
        limit: float | None = None,
        priority: int = 0,
        key: str | None = None,
        claimable: bool = True,
    ) -> int:
        """The execution of an entry that was dispatched just now."""
        timeout = None if limit is None else timedelta(seconds=limit)
        entry = await self.conn.fetchval(
            ENTRY, kind, train, json.dumps(input or {}), manifest, fire_key, attempt, crashes, max_attempts,
            max_crashes, timeout, priority, key,
        )  # fmt: skip
        execution = await self.conn.fetchval(EXECUTION, entry)
        await self.conn.execute("UPDATE interlock.work_queue SET execution_id = $1 WHERE id = $2", execution, entry)
        if claimable:
            await self.conn.execute(JOB, execution, entry)
        return execution

    async def claimed(self, execution: int, *, server: UUID | None = None, token: UUID | None = None) -> UUID:
        """Claim it for somebody who does not run it."""
        token = token or uuid4()
        await self.conn.execute("DELETE FROM interlock.background_job WHERE execution_id = $1", execution)
        await self.conn.execute(
            "UPDATE interlock.execution SET state = 'in_progress', server_id = $2, host = 'x', claim_token = $3,"
            " started_at = clock_timestamp() WHERE id = $1",
            execution, server or uuid4(), token,
        )  # fmt: skip
        return token

    async def manifest(
        self, external_id: str, *, kind: str = "every", parent: int | None = None, planned: bool = True,
        enabled: bool = True, train: str = "work",
    ) -> int:  # fmt: skip
        now = await self.conn.fetchval("SELECT now()") if planned else None
        return await self.conn.fetchval(MANIFEST, external_id, train, kind, parent, now, enabled)

    async def execution(self, execution: int) -> dict[str, Any]:
        return dict(await self.conn.fetchrow("SELECT * FROM interlock.execution WHERE id = $1", execution))

    async def entry_of(self, execution: int) -> dict[str, Any]:
        return dict(
            await self.conn.fetchrow(
                "SELECT w.* FROM interlock.work_queue w, interlock.execution e WHERE e.id = $1 AND w.id = e.entry_id",
                execution,
            )
        )

    async def marker(self, manifest: int) -> bool:
        """Whether the manager would look at it."""
        return await self.conn.fetchval(
            "SELECT next_run_at IS NOT NULL FROM interlock.manifest WHERE id = $1", manifest
        )

    async def queued(self) -> list[dict[str, Any]]:
        rows = await self.conn.fetch("SELECT * FROM interlock.work_queue WHERE state = 'queued' ORDER BY id")
        return [dict(row) for row in rows]

    async def dead_letters(self) -> list[dict[str, Any]]:
        return [dict(row) for row in await self.conn.fetch("SELECT * FROM interlock.dead_letter ORDER BY id")]

    async def states(self) -> dict[int, str]:
        rows = await self.conn.fetch("SELECT id, state FROM interlock.execution ORDER BY id")
        return {row["id"]: row["state"] for row in rows}
