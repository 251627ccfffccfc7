"""Executions that went on for too long, and manifests that failed too often, as the manager's reapers see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from interlock.model.lifecycle import ExecutionState
    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog


class Overrun(NamedTuple):
    """An execution that was asked to stop."""

    execution_id: int
    train: str
    attempt: int
    timeout: timedelta
    manifest: str | None


class Overdue(NamedTuple):
    """An execution that has to be closed for its holder."""

    execution_id: int
    claim_token: UUID | None
    cancel_cause: str | None = None


class Exhausted(NamedTuple):
    """A manifest that now waits for a person."""

    dead_letter_id: int
    manifest_id: int
    manifest: str
    execution_id: int
    train: str
    attempts: int


class Reaping:
    """Every verb passes over rows that somebody else holds: who ends an execution at this moment is not waited for."""

    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def request_timeouts(self, conn: Connection, *, now: datetime | None) -> list[Overrun]:
        """Ask everything that runs past its timeout to stop."""
        rows = await self._sql["manifest/request_timeouts"].fetch(conn, now=now)
        return [Overrun(row["id"], row["train"], row["attempt"], row["timeout"], row["manifest"]) for row in rows]

    async def unheeded_timeouts(self, conn: Connection, *, grace: timedelta, now: datetime | None) -> list[Overdue]:
        rows = await self._sql["manifest/list_unheeded_timeouts"].fetch(conn, grace=grace, now=now)
        return [Overdue(row["id"], row["claim_token"], row["cancel_cause"]) for row in rows]

    async def stale(
        self, conn: Connection, state: ExecutionState, *, longer_than: timedelta, now: datetime | None
    ) -> list[Overdue]:
        """What has been in this state for longer than that, with nobody living who holds it."""
        rows = await self._sql["manifest/list_stale"].fetch(conn, state=state.value, longer_than=longer_than, now=now)
        return [Overdue(row["id"], row["claim_token"]) for row in rows]

    async def reap_failed(
        self, conn: Connection, failed: Sequence[tuple[int, int, int | None]], *, now: datetime | None
    ) -> list[Exhausted]:
        """Write the dead letters that are missing.

        `failed` are manifests that are due, with their failures and, where it is said for them, how many are too many.
        """
        rows: list[Any] = await self._sql["manifest/reap_failed"].fetch(
            conn,
            due_ids=[manifest for manifest, _, _ in failed],
            failures=[failures for _, failures, _ in failed],
            max_attempts=[most for _, _, most in failed],
            now=now,
        )
        return [
            Exhausted(
                row["id"], row["manifest_id"], row["external_id"], row["execution_id"], row["train"], row["attempts"]
            )
            for row in rows
        ]
