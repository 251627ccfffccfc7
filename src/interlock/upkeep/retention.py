"""What has ended long ago goes, in small batches, on every server at once: deleting what is deleted harms nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.runtime.loop import IMMEDIATELY
from interlock.store.server import Servers

if TYPE_CHECKING:
    from datetime import timedelta

    from interlock.store.database import Database
    from interlock.upkeep.settings import UpkeepSettings


class Retention:
    name = "retention"

    def __init__(self, database: Database, settings: UpkeepSettings) -> None:
        self._database, self._settings = database, settings
        self._servers = Servers(database.sql)

    async def tick(self) -> timedelta:
        limit = self._settings.cleanup_batch
        async with self._database.tick() as conn:
            deleted = await self._servers.forget(conn, older_than=self._settings.execution_retention, limit=limit)
        return IMMEDIATELY if deleted == limit else self._settings.cleanup_interval
