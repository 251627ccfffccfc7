"""A connection kept for one purpose: a loop that works all the time saves the pool's reset after every use."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from interlock.store.fault import is_passing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import asyncpg

    from interlock.store.connection import Connection, Record
    from interlock.store.database import Database


class Line:
    """For one user at a time; opened on first use, and anew after it broke or its user was cancelled.

    With `by_key` its statements are planned as lookups by key, whatever the tables looked like when they were planned.
    Behind a transaction pooler (no statement cache) it is left out: the setting would stay with a connection of others.
    """

    def __init__(self, database: Database, purpose: str, *, by_key: bool = False) -> None:
        self._database, self._purpose = database, purpose
        self._by_key = by_key and database.settings.statement_cache_size != 0
        self._conn: asyncpg.Connection[Record] | None = None

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection, None]:
        conn = self._conn
        if conn is None or conn.is_closed():
            conn = self._conn = await self._open()
        try:
            yield conn
        except asyncio.CancelledError:
            # Cut in a BEGIN or COMMIT, it would keep the next transaction inside one that nobody commits.
            await self.close()
            raise
        except Exception as error:
            if is_passing(error):
                await self.close()
            raise

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Connection, None]:
        async with self.connection() as conn, self._database.transaction_on(conn):
            yield conn

    async def close(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            with suppress(Exception):
                await conn.close(timeout=1)

    async def _open(self) -> asyncpg.Connection[Record]:
        conn = await self._database.connect(self._purpose)
        try:
            if self._by_key:
                await self._database.plan_by_key(conn)
        except BaseException:
            conn.terminate()
            raise
        return conn
