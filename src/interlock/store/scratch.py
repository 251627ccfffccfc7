"""Databases for tests: each a copy of one that has the schema, made in a few dozen milliseconds."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from interlock.store import migrate

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from interlock.store.connection import Connection


class ScratchDatabases:
    """Copies of a template on one server; the account must be allowed to create databases."""

    def __init__(self, server: str, schema: str) -> None:
        self._server, self._schema = server, schema
        self._template = _new_name()

    async def prepare(self) -> None:
        """Make the template."""
        await self._execute(f'create database "{self._template}" template template0')
        async with _connection(self._at(self._template)) as conn:
            await migrate.apply(conn, self._schema)

    async def create(self) -> str:
        """The address of a new database with the schema."""
        name = _new_name()
        await self._execute(f'create database "{name}" template "{self._template}"')
        return self._at(name)

    async def drop(self, dsn: str) -> None:
        """Also when somebody is still connected."""
        await self._execute(f'drop database if exists "{urlsplit(dsn).path[1:]}" with (force)')

    async def close(self) -> None:
        await self.drop(self._at(self._template))

    async def _execute(self, statement: str) -> None:
        async with _connection(self._server) as conn:
            await conn.execute(statement)

    def _at(self, name: str) -> str:
        return urlunsplit(urlsplit(self._server)._replace(path=f"/{name}"))


def _new_name() -> str:
    return f"interlock_test_{uuid4().hex[:12]}"


@asynccontextmanager
async def _connection(dsn: str) -> AsyncGenerator[Connection, None]:
    import asyncpg  # noqa: PLC0415  the driver loads on first use

    conn = await asyncpg.connect(dsn)
    try:
        yield conn
    finally:
        await conn.close()
