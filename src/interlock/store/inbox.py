"""The `inbox` table: what a consumer has already handled, written in its own transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.store.adapters.protocol import Call

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from interlock.store.adapters.protocol import Steps
    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog


class InboxMessages:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    def once(self, consumer: str, message_id: str) -> Steps[bool]:
        """True for the first transaction that says so of this consumer and message, and commits."""
        rows = yield Call(self._sql["inbox/once"], {"consumer": consumer, "message_id": message_id})
        return bool(rows)

    async def forget(self, conn: Connection, *, older_than: timedelta, limit: int, now: datetime | None) -> int:
        rows = await self._sql["inbox/forget"].fetch(conn, older_than=older_than, limit=limit, now=now)
        return len(rows)
