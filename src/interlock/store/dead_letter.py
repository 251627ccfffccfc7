"""The `dead_letter` table: what waits for a person, and how a person resolves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.model.dead_letter import DeadLetter
from interlock.model.lifecycle import DeadLetterState
from interlock.store.execution import MANUAL, Executions

if TYPE_CHECKING:
    from datetime import datetime

    from interlock.model.execution import Policy
    from interlock.store.connection import Connection, Record
    from interlock.store.sql import Catalog


class DeadLetters:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql
        self._executions = Executions(sql)

    async def requeue_if_open(
        self,
        conn: Connection,
        dead_letter_id: int,
        *,
        actor: str | None,
        note: str | None,
        policy: Policy,
        now: datetime | None,
    ) -> int | None:
        """Queue the work anew, from its first attempt; answers the entry, or None if somebody resolved it before."""
        row = await self._sql["dead_letter/requeue"].fetchrow(
            conn, id=dead_letter_id, actor=actor, note=note, now=now, **policy._asdict()
        )
        if row is None:
            return None
        entry: int = row["id"]
        await self._sql["dead_letter/link"].execute(conn, id=dead_letter_id, entry_id=entry)
        await self._resolved(conn, row, now)
        return entry

    async def acknowledge_if_open(
        self,
        conn: Connection,
        dead_letter_id: int,
        *,
        actor: str | None,
        note: str | None,
        now: datetime | None,
    ) -> bool:
        """Close it without running anything; answers whether it was open."""
        row = await self._sql["dead_letter/acknowledge"].fetchrow(
            conn, id=dead_letter_id, actor=actor, note=note, now=now
        )
        if row is not None:
            await self._resolved(conn, row, now)
        return row is not None

    async def get(self, conn: Connection, dead_letter_id: int) -> DeadLetter | None:
        row = await self._sql["dead_letter/get"].fetchrow(conn, id=dead_letter_id)
        return None if row is None else _dead_letter(row)

    async def list_open(self, conn: Connection, *, after: int = 0, limit: int = 100) -> list[DeadLetter]:
        """Those that wait for a person, oldest first."""
        rows = await self._sql["dead_letter/list"].fetch(conn, after=after, limit=limit)
        return [_dead_letter(row) for row in rows]

    async def _resolved(self, conn: Connection, row: Record, now: datetime | None) -> None:
        if row["manifest_id"] is None or row["kind"] == MANUAL:
            return
        await self._sql["dead_letter/start_count_anew"].execute(conn, manifest_id=row["manifest_id"], now=now)
        await self._executions.unblock(conn, [row["manifest_id"]], now=now)


def _dead_letter(row: Record) -> DeadLetter:
    return DeadLetter(**{**row, "state": DeadLetterState(row["state"])})
