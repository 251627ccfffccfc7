"""The `dead_letter` table: what waits for a person, and how a person resolves it, one or many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.model.dead_letter import DeadLetter
from interlock.model.lifecycle import DeadLetterState
from interlock.store.execution import MANUAL, Executions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from interlock.model.dead_letter import DeadLetterFilter
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
        ids: Sequence[int],
        *,
        actor: str,
        note: str | None,
        policy: Policy,
        now: datetime | None,
    ) -> dict[int, int]:
        """Queue the work anew, from its first attempt; answers the entry of each that nobody had resolved before."""
        rows = await self._sql["dead_letter/requeue"].fetch(
            conn, ids=list(ids), actor=actor, note=note, now=now, **policy._asdict()
        )
        entries = {row["dead_letter_id"]: row["entry_id"] for row in rows}
        await self._sql["dead_letter/link"].execute(conn, ids=list(entries), entry_ids=list(entries.values()))
        await self._resolved(conn, rows, now)
        return entries

    async def acknowledge_if_open(
        self, conn: Connection, ids: Sequence[int], *, actor: str, note: str | None, now: datetime | None
    ) -> list[int]:
        """Close them without running anything; answers those that were open."""
        rows = await self._sql["dead_letter/acknowledge"].fetch(conn, ids=list(ids), actor=actor, note=note, now=now)
        await self._resolved(conn, rows, now)
        return sorted(row["dead_letter_id"] for row in rows)

    async def choose(self, conn: Connection, wanted: DeadLetterFilter, *, after: int, limit: int) -> list[int]:
        """The open ones that fit, oldest first."""
        rows = await self._sql["dead_letter/choose"].fetch(conn, after=after, limit=limit, **wanted._asdict())
        return [row["id"] for row in rows]

    async def get(self, conn: Connection, ids: Sequence[int]) -> dict[int, DeadLetter]:
        """Those of these that exist, in any state."""
        rows = await self._sql["dead_letter/get"].fetch(conn, ids=list(ids))
        return {row["id"]: DeadLetter(**{**row, "state": DeadLetterState(row["state"])}) for row in rows}

    async def _resolved(self, conn: Connection, rows: Sequence[Record], now: datetime | None) -> None:
        """What they blocked is counted anew and given its marker back."""
        blocked = sorted({row["manifest_id"] for row in rows if row["manifest_id"] and row["kind"] != MANUAL})
        if blocked:
            await self._sql["dead_letter/start_count_anew"].execute(conn, manifest_ids=blocked, now=now)
            await self._executions.unblock(conn, blocked, now=now)
