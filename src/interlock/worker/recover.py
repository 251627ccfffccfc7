"""The recovery tick: whose server is lost. Runs on every server, whatever its roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.observe.events.server import ServerLost
from interlock.store.server import Servers

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from uuid import UUID

    from interlock.observe.bus import Emit
    from interlock.store.database import Database


class Recovery:
    name = "recovery"

    def __init__(
        self, database: Database, *, judge: Callable[[], UUID | None], interval: timedelta, emit: Emit
    ) -> None:
        self._database, self._judge, self._interval, self._emit = database, judge, interval, emit
        self._servers = Servers(database.sql)

    async def tick(self) -> timedelta:
        judge = self._judge()
        if judge is not None:
            async with self._database.tick() as conn:
                lost = await self._servers.mark_lost(conn, judge)
            for server in lost:
                self._emit(ServerLost(server=server.id, name=server.name, by=judge))
        return self._interval
