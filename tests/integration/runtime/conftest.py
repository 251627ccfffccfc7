from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from interlock.runtime.keeper import Keeper
from interlock.runtime.server import describe_server
from interlock.runtime.settings import RuntimeSettings
from interlock.store.database import Database
from interlock.store.settings import StoreSettings
from tests.harness.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import asyncpg

SHORT = {"lease": timedelta(seconds=2.4), "heartbeat": timedelta(seconds=0.6)}
LEASE = SHORT["lease"].total_seconds()


class House:
    """A database with keepers in it, whose events are kept."""

    def __init__(self, dsn: str, stack: AsyncExitStack) -> None:
        self.dsn, self._stack, self.events = dsn, stack, []

    def door(self, dsn: str = "") -> Database:
        database = Database(dsn or self.dsn, StoreSettings())
        self._stack.push_async_callback(database.close)
        return database

    def keeper(self, name: str = "one", *, dsn: str = "", **profile) -> Keeper:
        settings = RuntimeSettings(server_name=name, name="shop", **SHORT)
        return Keeper(self.door(dsn), describe_server(settings, **profile), settings, emit=self.events.append)

    async def started(self, name: str = "one", *, dsn: str = "", **profile) -> Keeper:
        keeper = self.keeper(name, dsn=dsn, **profile)
        await keeper.start()
        self._stack.push_async_callback(left, keeper)
        return keeper

    async def rows(self, columns: str = "id, name, state") -> list[asyncpg.Record]:
        async with self.door().connection() as conn:
            return await conn.fetch(f"SELECT {columns} FROM interlock.server ORDER BY started_at")

    async def states(self) -> dict:
        return {row["id"]: row["state"] for row in await self.rows()}

    def told(self, kind: type) -> list:
        return [event for event in tuple(self.events) if isinstance(event, kind)]


async def left(keeper: Keeper) -> None:
    keeper.stop()
    await eventually(lambda: not keeper.lives_here(), 60, "the end of the keeper")


@pytest.fixture
async def house(migrated) -> AsyncIterator[House]:
    async with AsyncExitStack() as stack:
        yield House(migrated, stack)
