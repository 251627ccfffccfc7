"""What happened in a database that is small and young, such as the demo's: everything is read every time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interlock.model.lifecycle import ExecutionState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta
    from uuid import UUID

    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog

MOST = 1000


@dataclass(frozen=True, slots=True)
class TrainCounts:
    train: str
    waiting: int
    running: int
    completed: int
    failed: int


@dataclass(frozen=True, slots=True)
class ExecutionNews:
    """How far one attempt got, and what follows from its end."""

    id: int
    state: ExecutionState
    train: str
    attempt: int
    crashes: int
    host: str | None
    server_id: UUID | None
    manifest: str | None
    failure: str | None
    error_message: str | None
    retry_in: timedelta | None
    dead_letter_id: int | None


class Summary:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def totals(self, conn: Connection) -> Mapping[str, Any]:
        row = await self._sql["summary/totals"].fetchrow(conn)
        return {} if row is None else dict(row)

    async def trains(self, conn: Connection) -> Sequence[TrainCounts]:
        return [TrainCounts(**row) for row in await self._sql["summary/trains"].fetch(conn)]

    async def executions(self, conn: Connection, from_id: int) -> Sequence[ExecutionNews]:
        """Those from this id on, the oldest first."""
        rows = await self._sql["summary/executions"].fetch(conn, from_id=from_id, limit=MOST)
        return [ExecutionNews(**{**row, "state": ExecutionState(row["state"])}) for row in rows]
