"""The holder's side of cancellation: what it holds and is to stop, asked every second and at every notice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.store.execution import Executions
from interlock.worker.run import mark

if TYPE_CHECKING:
    from datetime import timedelta

    from interlock.store.database import Database
    from interlock.worker.job import Job
    from interlock.worker.slots import Slots


class CancelWatch:
    """Also notices what was taken away: a token that was revoked after a timeout, a recovery by others."""

    name = "cancel watch"

    def __init__(self, database: Database, slots: Slots, *, interval: timedelta) -> None:
        self._database, self._slots, self._interval = database, slots, interval
        self._executions = Executions(database.sql)

    async def tick(self) -> timedelta:
        asked = dict(self._slots.held)
        if asked:
            async with self._database.connection() as conn:
                found = await self._executions.watch(conn, list(asked), [job.token for job in asked.values()])
            for interruption in found:
                job = asked[interruption.execution_id]
                if self._is_still_held(job) and mark(job, interruption):
                    job.cancel()
        return self._interval

    def _is_still_held(self, job: Job) -> bool:
        """What went back meanwhile may have come again under another token: of that nothing was asked."""
        return self._slots.held.get(job.execution_id) is job

    def concerns(self, detail: str) -> bool:
        """Whether a notice names something held here; a notice without names may concern everybody."""
        return not detail or any(part.isdigit() and int(part) in self._slots.held for part in detail.split(","))
