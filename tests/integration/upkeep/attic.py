"""History of any age, and the retention that looks at it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from interlock.store.database import Database
from interlock.store.settings import StoreSettings
from interlock.upkeep.retention import Retention
from interlock.upkeep.settings import UpkeepSettings
from tests.integration.worker.yard import Yard

if TYPE_CHECKING:
    import asyncpg

DEAD_LETTER = """
INSERT INTO interlock.dead_letter (state, reason, kind, train, input, first_entry_id, execution_id, group_id, priority,
    attempts, resolved_at)
VALUES ($1, 'max_attempts', 'adhoc', 'work', '{}', $2, $3, 1, 0, 3, now() - $4::interval)
RETURNING id
"""


class Attic(Yard):
    def __init__(self, dsn: str, conn: asyncpg.Connection) -> None:
        super().__init__(conn)
        self._dsn, self._databases = dsn, []

    async def close(self) -> None:
        for database in self._databases:
            await database.close()
        await self.conn.close()

    def retention(self, emit=lambda _: None, clock=None, **settings: Any) -> Retention:
        database = Database(self._dsn, StoreSettings())
        self._databases.append(database)
        return Retention(database, UpkeepSettings(**settings), emit=emit, clock=clock)

    async def ended(self, train: str = "work", *, days: float, failed: bool = False, **options: Any) -> int:
        """An execution that ended so long ago; its entry left the queue then."""
        execution = await self.dispatch(train, claimable=False, **options)
        await self.claimed(execution)
        await self.conn.execute(
            "UPDATE interlock.execution SET state = $2, failure = $3, ended_at = now() - $4::interval WHERE id = $1",
            execution,
            "failed" if failed else "completed",
            "error" if failed else None,
            timedelta(days=days),
        )
        await self.left(execution, timedelta(days=days))
        return execution

    async def left(self, execution: int, ago: timedelta) -> int:
        """Let its entry have left the queue so long ago; answers the entry's id."""
        return await self.conn.fetchval(
            "UPDATE interlock.work_queue SET left_at = now() - $2::interval WHERE execution_id = $1 RETURNING id",
            execution,
            ago,
        )

    async def dead_letter(self, *, days: float | None, execution: int | None = None) -> int:
        """One that was resolved so long ago; None: still open."""
        state = "awaiting_intervention" if days is None else "acknowledged"
        ago = None if days is None else timedelta(days=days)
        return await self.conn.fetchval(DEAD_LETTER, state, execution or 0, execution, ago)

    async def act(self, *, days: float) -> int:
        """A row of the audit that was written so long ago."""
        return await self.conn.fetchval(
            "INSERT INTO interlock.audit (at, actor, via, action, target_kind, target)"
            " VALUES (now() - $1::interval, 'ada', 'cli', 'pause', 'train', '*') RETURNING id",
            timedelta(days=days),
        )

    async def train(self, name: str, *, days: float = 0, retention: timedelta | None = None, **columns: Any) -> None:
        await self.conn.execute(
            "INSERT INTO interlock.train (name, aliases, retention, paused, group_id, last_seen_at)"
            " VALUES ($1, $2, $3, $4, $5, now() - $6::interval)",
            name,
            columns.get("aliases", []),
            retention,
            columns.get("paused", False),
            columns.get("group_id"),
            timedelta(days=days),
        )

    async def group(self, name: str) -> int:
        return await self.conn.fetchval("INSERT INTO interlock.manifest_group (name) VALUES ($1) RETURNING id", name)

    async def ids(self, table: str, column: str = "id") -> set[Any]:
        return {row[0] for row in await self.conn.fetch(f"SELECT {column} FROM interlock.{table}")}
