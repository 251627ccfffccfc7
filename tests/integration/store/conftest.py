from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import asyncpg
import pytest

from interlock.model.server import ServerProfile
from interlock.store.database import Database
from interlock.store.server import Servers
from interlock.store.settings import StoreSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from uuid import UUID


@pytest.fixture
async def closing() -> AsyncIterator[AsyncExitStack]:
    """What the test opened is closed at its end, in reverse order."""
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def connect(closing) -> Callable[[str], Awaitable[asyncpg.Connection]]:
    """Opens a connection of the test's own."""

    async def open_one(dsn: str) -> asyncpg.Connection:
        conn = await asyncpg.connect(dsn, timeout=60, command_timeout=60)
        closing.callback(conn.terminate)
        return conn

    return open_one


@pytest.fixture
def opened(closing) -> Callable[..., Database]:
    """Makes the door to a database, with settings."""

    def door(dsn: str, kind: type[Database] = Database, **settings) -> Database:
        database = kind(dsn, StoreSettings(**settings))
        closing.push_async_callback(database.close)
        return database

    return door


class Registry:
    """The server table in the hands of a test, over one connection."""

    def __init__(self, conn: asyncpg.Connection, servers: Servers) -> None:
        self.conn, self.servers = conn, servers

    async def register(self, name: str = "one", lease: float = 60.0) -> UUID:
        profile = ServerProfile(name=name, host="localhost", pid=1, version="0")
        await self.servers.register(self.conn, id := uuid4(), profile, timedelta(seconds=lease))  # noqa: A001  the row's own word
        return id

    async def age(self, id: UUID, **seconds: float) -> None:  # noqa: A002  the row's own word
        """Move columns into the past by so many seconds, counted from now."""
        changes = ", ".join(f"{name} = now() - interval '{value} s'" for name, value in seconds.items())
        await self.conn.execute(f"UPDATE interlock.server SET {changes} WHERE id = $1", id)

    async def state(self, id: UUID) -> str | None:  # noqa: A002  the row's own word
        return await self.conn.fetchval("SELECT state FROM interlock.server WHERE id = $1", id)

    async def lost(self, judge: UUID) -> set[UUID]:
        return {lost.id for lost in await self.servers.mark_lost(self.conn, judge)}


@pytest.fixture
async def registry(migrated, connect, opened) -> Registry:
    return Registry(await connect(migrated), Servers(opened(migrated).sql))
