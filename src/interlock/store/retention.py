"""What goes: a batch of each kind of row that has served its time. Who is at work on a row keeps it: it is skipped."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from interlock.store.manifest_group import ManifestGroups
from interlock.store.server import Servers
from interlock.store.train import AnnouncedTrains

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog


class OldRows:
    """Each method deletes at most `limit` rows and answers how many."""

    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def forget_executions(
        self,
        conn: Connection,
        *,
        older_than: timedelta,
        limit: int,
        now: datetime | None,
        window: timedelta | None = None,
    ) -> Counter[str]:
        """Ended ones, by train; `older_than` is for trains that say nothing themselves.

        With a window, only those that came of age within it.
        """
        statement = self._sql["execution/forget"]
        rows = await statement.fetch(conn, older_than=older_than, limit=limit, now=now, window=window)
        return Counter(row["train"] for row in rows)

    async def forget_entries(self, conn: Connection, *, older_than: timedelta, limit: int, now: datetime | None) -> int:
        """Those that left the queue so long ago, unless they hold a key or their execution is active."""
        return len(await self._sql["work_queue/forget"].fetch(conn, older_than=older_than, limit=limit, now=now))

    async def forget_dead_letters(
        self, conn: Connection, *, older_than: timedelta, limit: int, now: datetime | None
    ) -> int:
        """Those that a person resolved so long ago."""
        return len(await self._sql["dead_letter/forget"].fetch(conn, older_than=older_than, limit=limit, now=now))

    async def forget_acts(self, conn: Connection, *, older_than: timedelta, limit: int, now: datetime | None) -> int:
        """Rows of the audit that were written so long ago."""
        return len(await self._sql["audit/forget"].fetch(conn, older_than=older_than, limit=limit, now=now))

    async def forget_orphaned_jobs(self, conn: Connection, *, limit: int) -> int:
        """Jobs without an active execution; in a healthy system there are none."""
        return len(await self._sql["background_job/forget"].fetch(conn, limit=limit))

    async def forget_servers(self, conn: Connection, *, older_than: timedelta, limit: int) -> int:
        return await Servers(self._sql).forget(conn, older_than=older_than, limit=limit)

    async def forget_declarations(self, conn: Connection, *, older_than: timedelta) -> tuple[int, int]:
        """Trains that no server has known for so long, and groups that nothing uses; answers how many of each.

        A server that starts may be about to use a group that it found unused, so nothing goes while one declares.
        """
        name = f"interlock declarations {self._sql.schema}"
        if not await self._sql["declaration/try_lock"].fetchval(conn, name=name):
            return 0, 0
        trains = await AnnouncedTrains(self._sql).forget(conn, older_than=older_than)
        return len(trains), len(await ManifestGroups(self._sql).forget(conn))
