"""A connection kept for one purpose: a loop that works all the time saves the pool's reset after every use."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from interlock.store.fault import is_passing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import asyncpg

    from interlock.store.connection import Connection, Record
    from interlock.store.database import Database


class Line:
    """For one user at a time, outside any transaction; opened on first use, and anew after it broke."""

    def __init__(self, database: Database, purpose: str) -> None:
        self._database, self._purpose = database, purpose
        self._conn: asyncpg.Connection[Record] | None = None

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection, None]:
        conn = self._conn
        if conn is None or conn.is_closed():
            conn = self._conn = await self._database.connect(self._purpose)
        try:
            yield conn
        except Exception as error:
            if is_passing(error):
                await self.close()
            raise

    async def close(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            with suppress(Exception):
                await conn.close(timeout=1)
