"""The `outbox` table as people see it: lists, figures, redrive, and what is forgotten in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interlock.model.lifecycle import OutboxState
from interlock.model.message import AttemptRow, Figures, MessageDetail, MessageRow, TopicStats, record
from interlock.store.notify import channel_of

if TYPE_CHECKING:
    from builtins import list as listing
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from interlock.store.connection import Connection, Record
    from interlock.store.sql import Catalog


class OutboxReview:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def find(
        self, conn: Connection, *, retries: bool, topic: str | None, limit: int, now: datetime | None
    ) -> listing[MessageRow]:
        """Look only: it claims and hides nothing."""
        rows = await self._sql["outbox/find"].fetch(conn, retries=retries, topic=topic, limit=limit, now=now)
        return [_row(row) for row in rows]

    async def list(
        self, conn: Connection, *, state: str | None, topic: str | None, before: int | None, limit: int
    ) -> listing[MessageRow]:
        """The newest first, from `before` on."""
        rows = await self._sql["outbox/list"].fetch(conn, state=state, topic=topic, before=before, limit=limit)
        return [_row(row) for row in rows]

    async def get(self, conn: Connection, message: int | str) -> MessageDetail | None:
        """By its number or by its message id."""
        named = isinstance(message, str)
        row = await self._sql["outbox/get"].fetchrow(
            conn, id=None if named else message, message_id=message if named else None
        )
        if row is None:
            return None
        history = await self._sql["outbox_attempt/list"].fetch(conn, outbox_id=row["id"])
        attempts = [record(AttemptRow, each) for each in history]
        return MessageDetail(_row(row), row["payload"], row["headers"], row["trace"], attempts)

    async def redrive(
        self,
        conn: Connection,
        *,
        ids: Sequence[int] | None,
        message_ids: Sequence[str],
        topic: str | None,
        failure: str | None,
        limit: int,
        rate: float | None,
        actor: str,
        note: str | None,
        now: datetime | None,
    ) -> dict[int, bool]:
        """Let dead messages and those under review be delivered again; answers which of them come out of order."""
        rows = await self._sql["outbox/redrive"].fetch(
            conn,
            ids=ids,
            message_ids=message_ids,
            topic=topic,
            failure=failure,
            limit=limit,
            rate=rate,
            actor=actor,
            note=note,
            channel=channel_of(self._sql.schema),
            now=now,
        )
        return {row["id"]: row["out_of_order"] for row in rows}

    async def stats(self, conn: Connection, *, now: datetime | None) -> listing[TopicStats]:
        return [record(TopicStats, row) for row in await self._sql["outbox/stats"].fetch(conn, now=now)]

    async def examine(self, conn: Connection, *, window: timedelta, now: datetime | None) -> Figures:
        row = await self._sql["outbox/examine"].fetchrow(conn, window=window, now=now)
        if row is None:
            raise AssertionError("the statement answers one row, whatever it finds")
        return Figures(*row.values())._replace(
            without_record=row["without_record"] or (), two_records=row["two_records"] or ()
        )

    async def workers(self, conn: Connection) -> listing[Mapping[str, Any]]:
        return [dict(row) for row in await self._sql["outbox/workers"].fetch(conn)]

    async def forget(self, conn: Connection, *, older_than: timedelta, limit: int, now: datetime | None) -> int:
        """Delete messages that were delivered, or expired, long ago."""
        rows = await self._sql["outbox/forget"].fetch(conn, older_than=older_than, limit=limit, now=now)
        return len(rows)


def _row(row: Record) -> MessageRow:
    values = list(row.values())[:20]
    values[5] = OutboxState(values[5])
    return MessageRow(*values)
