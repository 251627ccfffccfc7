"""What was delivered long ago goes, in small batches; what waits for a person stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.runtime.loop import IMMEDIATELY
from interlock.store.inbox import InboxMessages
from interlock.store.outbox_review import OutboxReview

if TYPE_CHECKING:
    from datetime import timedelta

    from interlock.outbox.settings import OutboxSettings
    from interlock.runtime.clock import Clock
    from interlock.store.database import Database

BATCH = 1000


class OutboxRetention:
    name = "outbox retention"

    def __init__(self, database: Database, settings: OutboxSettings, *, interval: timedelta, clock: Clock) -> None:
        self._database, self._settings, self._interval, self._clock = database, settings, interval, clock
        self._messages, self._inbox = OutboxReview(database.sql), InboxMessages(database.sql)

    async def tick(self) -> timedelta:
        older_than, now = self._settings.outbox_retention, self._clock.injected()
        async with self._database.tick() as conn:
            deleted = await self._messages.forget(conn, older_than=older_than, limit=BATCH, now=now)
            handled = await self._inbox.forget(conn, older_than=older_than, limit=BATCH, now=now)
        return IMMEDIATELY if BATCH in (deleted, handled) else self._interval
