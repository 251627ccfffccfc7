"""The `execution` table: one row per attempt, from its dispatch to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from interlock.model.outcome import Ended, Ending
    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog


class Executions:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def end(self, conn: Connection, endings: Sequence[Ending], *, now: datetime | None) -> list[Ended]:
        """End these executions and write all that follows from it, in the caller's transaction.

        An execution that is not active any more, or that another claim holds by now, is left alone and is missing from
        the answer. What follows: a retry, a requeue in place (worker_lost), a snooze entry or a dead letter; the key
        moves along or is freed; the manifest's success, its marker and those of its dependents.
        """
        raise NotImplementedError
