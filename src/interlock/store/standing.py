"""How far the work stands: two looks that are the same say that nothing happened in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog


class Standing:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def look(self, conn: Connection) -> tuple[Any, ...]:
        row = await self._sql["standing/look"].fetchrow(conn)
        return tuple(row.values()) if row is not None else ()

    async def present(self, conn: Connection) -> datetime:
        """The database's own time."""
        now: datetime = await self._sql["standing/present"].fetchval(conn)
        return now
