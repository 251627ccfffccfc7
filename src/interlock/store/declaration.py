"""Manifests as code declares them: found, inserted, changed, announced and pruned, always for many at once.

All who declare do so one after the other, under one advisory lock of the schema. What code last said is therefore
stable while it is compared, and only the rows that change are locked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from interlock.model.manifest import Origin
from interlock.model.plan import Plan
from interlock.store.declaration_row import batches, parts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from interlock.model.manifest import Said
    from interlock.store.connection import Connection
    from interlock.store.database import Database
    from interlock.store.declaration_row import Columns
    from interlock.store.sql import Catalog

T = TypeVar("T")

ATTEMPTS = 6


@dataclass(frozen=True, slots=True)
class StoredManifest:
    """Whose it is, where it comes from, and what code last said of it."""

    id: int
    external_id: str
    app: str | None
    origin: Origin
    said: Said


@dataclass(frozen=True, slots=True)
class HeldManifest:
    """A row that this transaction holds: its schedule as stored, and its plan."""

    schedule: Any
    plan: Plan | None


class DeclaredManifests:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def lock(self, conn: Connection) -> None:
        """Wait until nobody else declares; until the end of the transaction."""
        await self._sql["declaration/lock"].execute(conn, name=f"interlock declarations {self._sql.schema}")

    async def now(self, conn: Connection, injected: datetime | None) -> datetime:
        """The time to plan from: the database's, unless a test injects another."""
        now: datetime = await self._sql["declaration/now"].fetchval(conn, now=injected)
        return now

    async def find(self, conn: Connection, external_ids: Collection[str]) -> dict[str, StoredManifest]:
        """Those of these manifests that exist, by external id."""
        rows = await self._sql["declaration/find"].fetch(conn, external_ids=sorted(external_ids))
        read = msgspec.json.Decoder(dict[str, Any]).decode
        return {
            row["external_id"]: StoredManifest(
                row["id"], row["external_id"], row["app"], Origin(row["origin"]), read(row["declared"])
            )
            for row in rows
        }

    async def new_ids(self, conn: Connection, count: int) -> list[int]:
        table = f'"{self._sql.schema}".manifest'
        rows = await self._sql["declaration/new_ids"].fetch(conn, table=table, count=count)
        return [row["id"] for row in rows]

    async def insert(self, conn: Connection, rows: Iterable[Columns], *, app: str | None, origin: Origin) -> None:
        """Parents come before their children, or with them."""
        for batch in batches(rows):
            await self._sql["declaration/insert"].execute(conn, rows=batch, app=app, origin=origin)

    async def hold(self, conn: Connection, ids: Collection[int]) -> dict[int, HeldManifest]:
        """Lock these rows, in the order of their ids."""
        held: dict[int, HeldManifest] = {}
        for part in parts(sorted(ids)):
            for row in await self._sql["declaration/hold"].fetch(conn, ids=part):
                plan = _plan(row["planned_at"], row["planned_offset"])
                held[row["id"]] = HeldManifest(msgspec.json.decode(row["schedule"]), plan)
        return held

    async def change(self, conn: Connection, changes: Iterable[Columns], *, app: str | None, origin: Origin) -> None:
        """Write what differs to rows that are held."""
        for batch in batches(changes):
            await self._sql["declaration/change"].execute(conn, changes=batch, app=app, origin=origin)

    async def wake_dependents(self, conn: Connection, ids: Sequence[int], *, now: datetime | None) -> list[int]:
        """Plan those whose parent has a success that they have not consumed; answers their ids."""
        rows = await self._sql["declaration/wake_dependents"].fetch(conn, ids=ids, now=now)
        return [row["id"] for row in rows]

    async def mark(self, conn: Connection, ids: Sequence[int]) -> bool:
        """Set the markers of rows that are held; answers whether one of them has something to wait for."""
        marked = False
        for part in parts(ids):
            rows = await self._sql["declaration/mark"].fetch(conn, ids=part)
            marked = marked or any(row["next_run_at"] is not None for row in rows)
        return marked

    async def ancestors(self, conn: Connection, external_id: str) -> list[str]:
        """The manifest itself, its parent, and so on; empty if it does not exist."""
        rows = await self._sql["declaration/ancestors"].fetch(conn, external_id=external_id)
        return [row["external_id"] for row in rows]

    async def announce(self, conn: Connection, server: UUID, app: str, external_ids: Collection[str]) -> None:
        """Say that this server's code declares these and no others."""
        await self._sql["declaration/announce"].execute(
            conn, server_id=server, app=app, external_ids=sorted(external_ids)
        )

    async def prune(self, conn: Connection, app: str) -> list[str]:
        """Delete what no live server of the app declares any more, except what is queued or runs."""
        await self._sql["declaration/forget"].execute(conn)
        orphans = [row["id"] for row in await self._sql["declaration/orphans"].fetch(conn, app=app)]
        if not orphans:
            return []
        return [row["external_id"] for row in await self._sql["declaration/prune"].fetch(conn, ids=orphans)]


async def declaring(database: Database, work: Callable[[Connection], Awaitable[T]]) -> T:
    """The work in a transaction of its own, alone among all who declare.

    PostgreSQL, or who waits, ends the transaction of a process that stands still, so that it cannot keep others from
    starting. Whoever was ended so, waited too long for its turn, or was picked to break a deadlock, begins anew:
    nothing of it was kept.
    """
    import asyncpg  # noqa: PLC0415  the driver loads on first use

    again = (
        asyncpg.DeadlockDetectedError,
        asyncpg.SerializationError,
        asyncpg.LockNotAvailableError,
        asyncpg.QueryCanceledError,
        asyncpg.AdminShutdownError,
        asyncpg.PostgresConnectionError,
        asyncpg.InterfaceError,
        OSError,
    )
    attempt = 0
    while True:
        try:
            async with database.tick() as conn:
                if attempt:
                    await database.end_stalled_ticks(conn)
                await DeclaredManifests(database.sql).lock(conn)
                return await work(conn)
        except again:
            attempt += 1
            if attempt == ATTEMPTS:
                raise


def _plan(planned_at: datetime | None, offset: Any) -> Plan | None:
    return None if planned_at is None else Plan(planned_at - offset, offset)
