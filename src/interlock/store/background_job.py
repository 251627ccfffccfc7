"""The `background_job` table: executions that any worker may claim now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.model.execution import Claim
from interlock.model.lifecycle import ExecutionState
from interlock.model.outcome import WORKER_LOST, Ending
from interlock.store.execution import Executions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog


class BackgroundJobs:
    def __init__(self, sql: Catalog) -> None:
        self._claim, self._release = sql["background_job/claim"], sql["background_job/release"]
        self._recall, self._executions = sql["background_job/recall"], Executions(sql)

    async def claim(
        self,
        conn: Connection,
        *,
        trains: Sequence[str],
        limit: int,
        server: UUID,
        host: str,
        token: UUID,
        now: datetime | None,
    ) -> list[Claim]:
        """Take up to `limit` jobs of these trains, in the dispatcher's order; the token is the proof of the claim."""
        rows = await self._claim.fetch(conn, trains=trains, limit=limit, server=server, host=host, token=token, now=now)
        return [Claim._make(row) for row in rows]

    async def recall(self, conn: Connection, *, server: UUID, token: UUID) -> list[Claim]:
        """What was claimed with this token, for a claim whose answer never arrived."""
        return [Claim._make(row) for row in await self._recall.fetch(conn, server=server, token=token)]

    async def release_if_held(self, conn: Connection, ids: list[int], tokens: list[UUID]) -> list[int]:
        """Hand claimed jobs back, with the same attempt; answers those that were still held.

        What had been submitted to this server goes back to the queue, in its old place and uncounted, as if recovery
        had found it: there is no job that another worker could claim.
        """
        rows = await self._release.fetch(conn, ids=ids, tokens=tokens)
        submitted = [_handed_back(row["id"]) for row in rows if row["submitted"]]
        await self._executions.end(conn, submitted, now=None)
        return [row["id"] for row in rows]


def _handed_back(execution_id: int) -> Ending:
    message = "its server shut down before the end and handed it back"
    return Ending(execution_id, None, ExecutionState.FAILED, failure=WORKER_LOST, error_message=message)
