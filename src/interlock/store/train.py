"""The `train` table: what servers have announced that they can run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.store.declaration_row import batches

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from interlock.store.connection import Connection
    from interlock.store.declaration_row import Columns
    from interlock.store.sql import Catalog


class AnnouncedTrains:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def announce(
        self, conn: Connection, trains: Sequence[Columns], *, app: str | None, only_new: bool = False
    ) -> int:
        """Write those that are new, changed, or were last seen long ago; answers how many."""
        ordered, statement = sorted(trains, key=lambda train: str(train["name"])), self._sql["train/announce"]
        return sum(
            [len(await statement.fetch(conn, rows=batch, app=app, only_new=only_new)) for batch in batches(ordered)]
        )

    async def forget(self, conn: Connection, *, older_than: timedelta) -> list[str]:
        """Delete trains that no server has known for so long."""
        return [row["name"] for row in await self._sql["train/forget"].fetch(conn, older_than=older_than)]
