"""The `outbox_topic` table: which topics are parked, and whose breaker is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog


class OutboxTopics:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def park(self, conn: Connection, topic: str, *, parked: bool, actor: str) -> bool:
        """Switch the claiming of a topic off or on; False says that it was so already."""
        found = await self._sql["outbox_topic/park"].fetchval(conn, topic=topic, parked=parked, actor=actor)
        return found is not None

    async def open(
        self, conn: Connection, topic: str, *, pause: timedelta, most: timedelta, now: datetime | None
    ) -> timedelta | None:
        """Claim nothing of the topic for a while; None says that somebody opened its breaker already."""
        waits: timedelta | None = await self._sql["outbox_topic/open"].fetchval(
            conn, topic=topic, pause=pause, most=most, now=now
        )
        return waits

    async def close(self, conn: Connection, topic: str) -> bool:
        """Claim the topic again; False says that its breaker was not open."""
        return await self._sql["outbox_topic/close"].fetchval(conn, topic=topic) is not None
