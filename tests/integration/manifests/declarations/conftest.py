"""Versions of an app's code that are deployed to one database, each as a server of its own."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import asyncpg
import msgspec
import pytest

from interlock.manifests.declare import Declarations
from interlock.manifests.seed import Seeding
from interlock.manifests.settings import ManifestSettings
from interlock.manifests.surface import DeclaringApp
from interlock.model.server import ServerProfile
from interlock.store.database import Database
from interlock.store.server import Servers
from interlock.store.settings import StoreSettings
from interlock.trains.registry import Registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from interlock.manifests.seed import Seeded


class Version(DeclaringApp):
    """One version of the code of an app, with a train `greet`."""

    def __init__(self, database: Database, name: str | None) -> None:
        self.declarations = Declarations(Registry(), ManifestSettings(), max_input_bytes=1024 * 1024)
        self._database, self._name = database, name

        @self.train
        async def greet(name: str = "Ada") -> str:
            return name

        self.greet = greet

    @property
    def _app_name(self) -> str | None:
        return self._name

    async def adatabase(self) -> Database:
        return self._database


class World:
    def __init__(self, dsn: str, conn: asyncpg.Connection, stack: AsyncExitStack) -> None:
        self.dsn, self.conn, self._stack, self.events = dsn, conn, stack, []
        self.database = self.door()
        self.servers = Servers(self.database.sql)

    def door(self) -> Database:
        database = Database(self.dsn, StoreSettings())
        self._stack.push_async_callback(database.close)
        return database

    def version(self, name: str | None = "shop") -> Version:
        return Version(self.database, name)

    async def register(self, app: str | None = "shop") -> UUID:
        profile = ServerProfile(name="one", host="h", pid=1, version="0", app=app)
        await self.servers.register(self.conn, id := uuid4(), profile, timedelta(seconds=60))  # noqa: A001  the row's own word
        return id

    async def end(self, server: UUID) -> None:
        await self.servers.drain_if_alive(self.conn, server)
        await self.servers.leave_if_draining(self.conn, server)

    def seeding(self, version: Version, server: UUID | None = None, **options: Any) -> Seeding:
        defaults = {"prune": True, "interval": timedelta(minutes=1), "emit": self.events.append}
        return Seeding(
            self.database,
            version.declarations,
            app=version._app_name,
            server=lambda: server,
            **{**defaults, **options},
        )

    async def seed(self, version: Version, **options: Any) -> Seeded:
        """As a client without a server would: nothing is announced, nothing pruned."""
        return await self.seeding(version, **options).seed()

    async def start(self, version: Version) -> UUID:
        """A server of this version registers and seeds."""
        server = await self.register(version._app_name)
        await self.seeding(version, server).seed()
        return server

    async def manifest(self, external_id: str) -> dict[str, Any]:
        row = await self.conn.fetchrow("SELECT * FROM interlock.manifest WHERE external_id = $1", external_id)
        assert row is not None, external_id
        return {
            **row,
            **{name: msgspec.json.decode(row[name]) for name in ("declared", "schedule", "exclusions", "input")},
        }

    async def manifests(self) -> list[str]:
        rows = await self.conn.fetch("SELECT external_id FROM interlock.manifest ORDER BY external_id")
        return [row[0] for row in rows]

    async def groups(self) -> dict[str, asyncpg.Record]:
        return {row["name"]: row for row in await self.conn.fetch("SELECT * FROM interlock.manifest_group")}

    async def versions_of_rows(self) -> dict[str, tuple[int, int]]:
        """Which transaction wrote each row, and which one locked it last."""
        rows = await self.conn.fetch(
            "SELECT 'manifest ' || external_id, xmin::text::bigint, xmax::text::bigint FROM interlock.manifest"
            " UNION ALL SELECT 'group ' || name, xmin::text::bigint, xmax::text::bigint FROM interlock.manifest_group"
            " UNION ALL SELECT 'train ' || name, xmin::text::bigint, xmax::text::bigint FROM interlock.train"
        )
        return {row[0]: (row[1], row[2]) for row in rows}

    async def set(self, external_id: str, **columns: Any) -> None:
        changes = ", ".join(f"{name} = ${place}" for place, name in enumerate(columns, start=2))
        await self.conn.execute(
            f"UPDATE interlock.manifest SET {changes} WHERE external_id = $1", external_id, *columns.values()
        )

    async def queue(self, external_id: str, kind: str = "scheduled") -> int:
        return await self.conn.fetchval(
            "INSERT INTO interlock.work_queue (kind, train, input, manifest_id, fire_key, attempt, max_attempts,"
            " max_crashes, retry_delay, max_retry_delay, retry_backoff, group_id, group_priority, priority, ready)"
            " SELECT $2, train, input, id, 'f', 1, 3, 3, '1 s', '1 s', 2, group_id, 0, 0, true"
            " FROM interlock.manifest WHERE external_id = $1 RETURNING id",
            external_id,
            kind,
        )

    async def execute(self, external_id: str, kind: str = "scheduled") -> int:
        return await self.conn.fetchval(
            "INSERT INTO interlock.execution (entry_id, first_entry_id, kind, train, input, manifest_id, group_id,"
            " attempt, crashes, max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff)"
            " SELECT 1, 1, $2, train, input, id, group_id, 1, 0, 3, 3, '1 s', '1 s', 2"
            " FROM interlock.manifest WHERE external_id = $1 RETURNING id",
            external_id,
            kind,
        )


@pytest.fixture
async def world(migrated) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        conn = await asyncpg.connect(migrated)
        stack.push_async_callback(conn.close)
        yield World(migrated, conn, stack)
