"""Slots that nobody has held for a day go; who wants the name again makes them anew."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.runtime.loop import IMMEDIATELY
from interlock.store.lock_slot import LockSlots

if TYPE_CHECKING:
    from interlock.store.database import Database

FREE_FOR = timedelta(days=1)
INTERVAL = timedelta(minutes=10)
BATCH = 1000


class LockRetention:
    name = "lock retention"

    def __init__(self, database: Database) -> None:
        self._database, self._slots = database, LockSlots(database.sql, "")

    async def tick(self) -> timedelta:
        async with self._database.tick() as conn:
            deleted = await self._slots.forget(conn, older_than=FREE_FOR, limit=BATCH)
        return IMMEDIATELY if deleted == BATCH else INTERVAL
