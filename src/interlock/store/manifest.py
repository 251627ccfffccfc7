"""The `manifest` table in the hands of the manager: what is due, and what became of it."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from interlock.errors import WriteRefused
from interlock.model.due import DueManifest
from interlock.model.plan import Misfire

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from interlock.model.due import FirstEntry, PlannedFire, Replanned
    from interlock.store.connection import Connection, Record
    from interlock.store.sql import Catalog

# Errors of these classes say nothing about the row that is written: the connection, a conflict between transactions,
# a server that is short of something or was told to stop.
_NOT_ABOUT_THE_ROW = frozenset({"08", "25", "40", "53", "55", "57", "58", "F0", "XX"})
_NO_TIME = timedelta(0)
_COLUMNS = tuple(field.name for field in fields(DueManifest))


class Manifests:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def lead_if_free(self, conn: Connection) -> bool:
        """Become the leader of this cycle until the transaction ends; never waits."""
        led: bool = await self._sql["manifest/lead"].fetchval(conn, schema=self._sql.schema)
        return led

    async def load(self, conn: Connection, *, bound: int, now: datetime | None) -> tuple[list[DueManifest], int]:
        """What is due, at most `bound` in all, and the share of a group: one that fills it may have more."""
        rows = await self._sql["manifest/load"].fetch(conn, bound=bound, now=now)
        return [_due(row) for row in rows], rows[0]["share"] if rows else bound

    async def hold_if_unchanged(self, conn: Connection, due: Iterable[DueManifest]) -> set[int]:
        """Lock those that are still as they were read; what others hold is passed over."""
        read = sorted((manifest.id, manifest.next_run_at, manifest.version) for manifest in due)
        ids, markers, versions = _columns(read, 3)
        rows = await self._sql["manifest/hold"].fetch(conn, ids=ids, markers=markers, versions=versions)
        return {row["id"] for row in rows}

    async def queue(
        self, conn: Connection, entries: Sequence[FirstEntry], *, max_crashes: int, now: datetime | None
    ) -> dict[int, int]:
        """Write the entries of held manifests and move their plans on; answers the entry of each that got one."""
        arguments = {**_fire_arguments([entry.fire for entry in entries]), **_entry_arguments(entries)}
        rows = await self._guarded(conn, "manifest/queue", {**arguments, "max_crashes": max_crashes, "now": now})
        return {row["id"]: row["entry_id"] for row in rows}

    async def pass_over(self, conn: Connection, fires: Sequence[PlannedFire]) -> None:
        """Deal with held manifests whose entry exists already."""
        await self._sql["manifest/pass_over"].execute(conn, **_fire_arguments(fires))

    async def block(self, conn: Connection, ids: Sequence[int]) -> set[int]:
        """Clear the markers of held manifests that are still blocked; answers those."""
        return {row["id"] for row in await self._sql["manifest/block"].fetch(conn, ids=ids)}

    async def lay_down(self, conn: Connection, ids: Sequence[int]) -> int:
        """Clear marker and plan of held manifests that have nothing to wait for."""
        return len(await self._sql["manifest/lay_down"].fetch(conn, ids=ids))

    async def replan(self, conn: Connection, verdicts: Sequence[Replanned]) -> int:
        plans = [(verdict.manifest.id, verdict.next.planned_at, verdict.next.offset) for verdict in verdicts]
        ids, planned_at, offsets = _columns(plans, 3)
        statement = self._sql["manifest/replan"]
        return len(await statement.fetch(conn, ids=ids, planned_at=planned_at, planned_offsets=offsets))

    async def set_aside(
        self, conn: Connection, refused: Sequence[tuple[int, str, timedelta]], *, now: datetime | None
    ) -> None:
        """Keep the error of each held manifest and look at it again after its pause."""
        ids, errors, pauses = _columns(refused, 3)
        await self._sql["manifest/set_aside"].execute(conn, ids=ids, errors=errors, pauses=pauses, now=now)

    async def rotate_groups(self, conn: Connection, ids: Iterable[int], *, now: datetime | None) -> None:
        """These groups were served: in the next cycle the others come first."""
        await self._sql["manifest/rotate_groups"].execute(conn, ids=sorted(ids), now=now)

    async def time_to_next_marker(self, conn: Connection, *, now: datetime | None) -> timedelta | None:
        ahead: timedelta | None = await self._sql["manifest/next_marker"].fetchval(conn, now=now)
        return ahead

    async def sweep(self, conn: Connection, *, limit: int, now: datetime | None) -> list[str]:
        """Set the markers that are missing; answers whose."""
        rows = await self._sql["manifest/sweep"].fetch(conn, limit=limit, now=now)
        return [row["external_id"] for row in rows]

    async def _guarded(self, conn: Connection, name: str, arguments: Mapping[str, Any]) -> list[Record]:
        """Under a savepoint, so that a row that PostgreSQL refuses costs this statement and not the transaction."""
        from asyncpg import PostgresError  # noqa: PLC0415  the driver loads on first use

        try:
            async with conn.transaction():
                return await self._sql[name].fetch(conn, **arguments)
        except PostgresError as error:
            if str(error.sqlstate)[:2] in _NOT_ABOUT_THE_ROW:
                raise
            raise WriteRefused(statement=name, reason=str(error)) from error


def _due(row: Record) -> DueManifest:
    values = {name: row[name] for name in _COLUMNS}
    return DueManifest(**{**values, "misfire": Misfire(row["misfire"])})


def _columns(rows: Sequence[tuple[Any, ...]], width: int) -> list[list[Any]]:
    """Rows as the arrays that `unnest` takes."""
    return [[row[index] for row in rows] for index in range(width)]


def _fire_arguments(fires: Sequence[PlannedFire]) -> dict[str, list[Any]]:
    return {
        "ids": [fire.manifest.id for fire in fires],
        "fire_keys": [fire.fire_key for fire in fires],
        "planned_at": [None if fire.next is None else fire.next.planned_at for fire in fires],
        "planned_offsets": [_NO_TIME if fire.next is None else fire.next.offset for fire in fires],
        "consumed": [fire.consumed for fire in fires],
    }


def _entry_arguments(entries: Sequence[FirstEntry]) -> dict[str, list[Any]]:
    return {
        "attempts": [entry.attempt for entry in entries],
        "priorities": [entry.policy.priority for entry in entries],
        "max_attempts": [entry.policy.max_attempts for entry in entries],
        "retry_delays": [entry.policy.retry_delay for entry in entries],
        "max_retry_delays": [entry.policy.max_retry_delay for entry in entries],
        "retry_backoffs": [entry.policy.retry_backoff for entry in entries],
        "timeouts": [entry.policy.timeout for entry in entries],
    }
