"""The holder's side of cancellation: what it holds and is to stop, asked every second and at every notice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.store.execution import Executions
from interlock.worker.run import mark

if TYPE_CHECKING:
    from datetime import timedelta

    from interlock.store.database import Database
    from interlock.worker.slots import Slots


class CancelWatch:
    """Also notices what was taken away: a token that was revoked after a timeout, a recovery by others."""

    name = "cancel watch"

    def __init__(self, database: Database, slots: Slots, *, interval: timedelta) -> None:
        self._database, self._slots, self._interval = database, slots, interval
        self._executions = Executions(database.sql)

    async def tick(self) -> timedelta:
        jobs = list(self._slots.held.values())
        if jobs:
            async with self._database.connection() as conn:
                found = await self._executions.watch(
                    conn, [job.execution_id for job in jobs], [job.token for job in jobs]
                )
            for interruption in found:
                job = self._slots.held.get(interruption.execution_id)
                if job is not None and mark(job, interruption):
                    job.cancel()
        return self._interval

    def concerns(self, detail: str) -> bool:
        """Whether a notice names something held here; a notice without names may concern everybody."""
        return not detail or any(part.isdigit() and int(part) in self._slots.held for part in detail.split(","))
