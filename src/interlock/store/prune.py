"""Manifests that nobody declares any more, removed on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog


class Orphans(NamedTuple):
    live_servers: int
    manifest_ids: list[int]


class Pruning:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def orphans(self, conn: Connection, app: str, *, declared: Collection[str]) -> Orphans:
        """What neither a live server of the app nor this list declares, locked."""
        live: int = await self._sql["prune/live_servers"].fetchval(conn, app=app)
        kept = await self._sql["prune/still_declared"].fetch(conn, external_ids=list(declared))
        rows = await self._sql["declaration/orphans"].fetch(conn, app=app)
        return Orphans(live, sorted({row["id"] for row in rows} - {row["id"] for row in kept}))

    async def prune(self, conn: Connection, ids: Sequence[int]) -> list[str]:
        """Delete these, except what is queued or runs."""
        rows = await self._sql["declaration/prune"].fetch(conn, ids=list(ids))
        return sorted(row["external_id"] for row in rows)
