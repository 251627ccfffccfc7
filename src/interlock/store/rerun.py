"""An execution run again, with its own input or another; the new entry names the execution that it repeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog


class Run(NamedTuple):
    """An execution as somebody sees it who wants to repeat it."""

    id: int
    train: str
    state: str
    ended: bool
    input: str


class Reruns:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def read(self, conn: Connection, execution_id: int) -> Run | None:
        row = await self._sql["rerun/read"].fetchrow(conn, id=execution_id)
        return None if row is None else Run._make(row)

    async def queue_if_ended(
        self,
        conn: Connection,
        execution_id: int,
        *,
        input: str | None,  # noqa: A002  the column's own word
        priority: int | None,
        now: datetime | None,
    ) -> int | None:
        """Queue it again; answers the entry, or None while it is active."""
        entry: int | None = await self._sql["rerun/queue"].fetchval(
            conn, id=execution_id, input=input, priority=priority, now=now
        )
        return entry
