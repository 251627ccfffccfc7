"""The `server` table: who runs, until when it may be believed, and who stopped answering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.model.lifecycle import ServerState
from interlock.model.server import LostServer, ServerProfile, ServerRow

if TYPE_CHECKING:
    from datetime import timedelta
    from uuid import UUID

    from interlock.store.connection import Connection, Record
    from interlock.store.sql import Catalog


class Servers:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def register(self, conn: Connection, id: UUID, profile: ServerProfile, lease: timedelta) -> timedelta:  # noqa: A002  the row's own word
        """Enter the registry; answers how much of the lease remains."""
        remaining: timedelta = await self._sql["server/register"].fetchval(
            conn,
            id=id,
            lease=lease,
            name=profile.name,
            app=profile.app,
            roles=profile.roles,
            trains=profile.trains,
            tags=profile.tags,
            slots=profile.slots,
            host=profile.host,
            pid=profile.pid,
            version=profile.version,
        )
        return remaining

    async def renew_if_held(self, conn: Connection, id: UUID) -> timedelta | None:  # noqa: A002  see register
        """Renew the lease; None says that the server was marked lost or has left."""
        remaining: timedelta | None = await self._sql["server/renew"].fetchval(conn, id=id)
        return remaining

    async def drain_if_alive(self, conn: Connection, id: UUID) -> bool:  # noqa: A002  see register
        return await self._sql["server/drain"].fetchval(conn, id=id) is not None

    async def leave_if_draining(self, conn: Connection, id: UUID) -> bool:  # noqa: A002  see register
        return await self._sql["server/leave"].fetchval(conn, id=id) is not None

    async def mark_lost(self, conn: Connection, judge: UUID) -> list[LostServer]:
        """Mark those whose lease expired, as far as this judge may judge; answers the newly lost."""
        rows = await self._sql["server/mark_lost"].fetch(conn, judge=judge)
        return [LostServer(row["id"], row["name"]) for row in rows]

    async def forget(self, conn: Connection, *, older_than: timedelta, limit: int) -> int:
        """Delete rows of servers that ended long ago."""
        return len(await self._sql["server/forget"].fetch(conn, older_than=older_than, limit=limit))

    async def list(self, conn: Connection, *, all: bool = False, limit: int = 1000) -> list[ServerRow]:  # noqa: A002  as in the flag
        rows = await self._sql["server/list"].fetch(conn, all=all, limit=limit)
        return [_server(row) for row in rows]


def _server(row: Record) -> ServerRow:
    profile = ServerProfile(
        name=row["name"],
        host=row["host"],
        pid=row["pid"],
        version=row["version"],
        app=row["app"],
        roles=tuple(row["roles"]),
        trains=tuple(row["trains"]),
        tags=tuple(row["tags"]),
        slots=row["slots"],
    )
    return ServerRow(
        id=row["id"],
        profile=profile,
        state=ServerState(row["state"]),
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        renewed_at=row["renewed_at"],
        heartbeat_age=row["heartbeat_age"],
        leased=row["leased"],
    )
