"""Cancelling on behalf of a person: entries, then executions, then entries again.

A settle that runs meanwhile may write a retry after the entries were looked at. It cannot do so after the executions
were marked, because it reads that mark; so what it wrote is found by looking at the entries once more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from interlock import failpoints
from interlock.model.lifecycle import ExecutionState
from interlock.model.outcome import Ending
from interlock.store.execution import MANUAL, Executions

if TYPE_CHECKING:
    from datetime import datetime

    from interlock.model.execution import Scope
    from interlock.store.connection import Connection, Record
    from interlock.store.sql import Catalog


@dataclass(slots=True)
class Cancelled:
    """What a cancellation found: entries and executions that ended at once, and those asked to stop."""

    entries: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    lineages: list[int] = field(default_factory=list)


class Cancellations:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql
        self._executions = Executions(sql)

    async def cancel(self, conn: Connection, scope: Scope, *, actor: str | None, now: datetime | None) -> Cancelled:
        cancelled, manifests = Cancelled(), set[int]()
        await self._cancel_entries(conn, scope, now, cancelled, manifests)
        await failpoints.reach("cancel.between_entries_and_executions")
        await self._cancel_executions(conn, scope, actor, now, cancelled)
        await self._cancel_entries(conn, scope, now, cancelled, manifests)
        if manifests:
            await self._executions.unblock(conn, manifests, now=now)
        return cancelled

    async def lineage(
        self, conn: Connection, *, execution_id: int | None = None, entry_id: int | None = None
    ) -> int | None:
        """The first entry of the work that an execution or entry belongs to, if there is such a one."""
        found: int | None = await self._sql["execution/lineage"].fetchval(
            conn, execution_id=execution_id, entry_id=entry_id
        )
        return found

    async def _cancel_entries(
        self, conn: Connection, scope: Scope, now: datetime | None, cancelled: Cancelled, manifests: set[int]
    ) -> None:
        rows = await self._sql["execution/cancel_entries"].fetch(conn, now=now, **scope._asdict())
        cancelled.entries += [row["id"] for row in rows]
        cancelled.lineages += [row["lineage"] for row in rows]
        manifests |= {row["manifest_id"] for row in rows if row["manifest_id"] and row["kind"] != MANUAL}

    async def _cancel_executions(
        self, conn: Connection, scope: Scope, actor: str | None, now: datetime | None, cancelled: Cancelled
    ) -> None:
        rows = await self._sql["execution/request_cancel"].fetch(conn, actor=actor, now=now, **scope._asdict())
        unclaimed = [_ending(row) for row in rows if row["state"] == ExecutionState.PENDING]
        ended = await self._executions.end(conn, unclaimed, now=now)
        cancelled.ended += [one.execution_id for one in ended]
        cancelled.lineages += [one.first_entry_id for one in ended]
        cancelled.asked += [row["id"] for row in rows if row["state"] == ExecutionState.IN_PROGRESS]


def _ending(row: Record | Any) -> Ending:
    return Ending(row["id"], row["claim_token"], ExecutionState.CANCELLED, error_message="cancelled before it began")
