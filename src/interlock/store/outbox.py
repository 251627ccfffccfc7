"""The `outbox` table: messages written in the user's transaction, claimed and settled by workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interlock.model.lifecycle import OutboxState
from interlock.model.message import LEAST_SHARE, Answer, Claimed, Claims, Published
from interlock.store.adapters.protocol import Call
from interlock.store.notify import channel_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from interlock.model.message import ClaimRequest, NewMessage, Settlement
    from interlock.store.adapters.protocol import Steps
    from interlock.store.connection import Connection, Record
    from interlock.store.sql import Catalog


class OutboxMessages:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    def publish(self, messages: Sequence[NewMessage], *, now: datetime | None) -> Steps[list[Published]]:
        """Write the messages in one statement; those whose id exists already are missing from the answer."""
        columns = zip(*messages, strict=True)
        names = ("topics", "payloads", "headers", "keys", "partitions", "message_ids", "delays", "expiries", "traces")
        values: dict[str, Any] = {name: list(column) for name, column in zip(names, columns, strict=True)}
        values |= {"now": now, "schema": self._sql.schema, "channel": channel_of(self._sql.schema)}
        rows = yield Call(self._sql["outbox/publish"], values)
        return [Published(row["id"], row["message_id"]) for row in rows]

    async def claim(self, conn: Connection, request: ClaimRequest, *, now: datetime | None) -> Claims:
        """Take what is due, and end what must not be delivered any more."""
        values = _claim_values(request, now)
        if request.buckets is None:
            rows = await self._sql["outbox/claim"].fetch(conn, least_share=LEAST_SHARE, **values)
            return Claims([_claimed(row) for row in rows], {})
        rows = await self._sql["outbox/claim_lanes"].fetch(
            conn,
            buckets=request.buckets,
            first=min(request.buckets),
            last=max(request.buckets),
            blocked_keys=request.blocked_keys,
            holds=[road.holds for road in request.roads],
            depth=request.depth,
            stretch=request.stretch,
            **values,
        )
        blocked = {row["key"]: row["blocked_for"] for row in rows if row["id"] is None}
        return Claims([_claimed(row) for row in rows if row["id"] is not None], blocked)

    async def deliver(
        self, conn: Connection, settlements: Sequence[Settlement], *, now: datetime | None
    ) -> set[tuple[int, UUID]]:
        """Settle plain deliveries; answers those claims that still held."""
        rows = await self._sql["outbox/deliver"].fetch(
            conn,
            ids=[each.id for each in settlements],
            tokens=[each.token for each in settlements],
            record_ids=[each.record_id for each in settlements],
            now=now,
        )
        return {(row["id"], row["token"]) for row in rows}

    async def settle(
        self, conn: Connection, settlements: Sequence[Settlement], *, host: str | None, now: datetime | None
    ) -> list[Answer]:
        """Write how deliveries ended, each only if its claim still holds; answers in order."""
        rows = await self._sql["outbox/settle"].fetch(
            conn,
            ids=[each.id for each in settlements],
            tokens=[each.token for each in settlements],
            outcomes=[each.outcome for each in settlements],
            record_ids=[each.record_id for each in settlements],
            failures=[each.failure for each in settlements],
            error_types=[each.error_type for each in settlements],
            error_messages=[each.error_message for each in settlements],
            delays=[each.delay for each in settlements],
            started=[each.took for each in settlements],
            claims=[each.claims for each in settlements],
            attempts=[each.attempts for each in settlements],
            host=host,
            now=now,
        )
        return [Answer(row["answer"]) for row in rows]

    async def release(
        self, conn: Connection, held: Sequence[tuple[int, UUID]], *, delay: timedelta, now: datetime | None
    ) -> set[int]:
        """Give back what was not emitted, as if it had not been claimed."""
        rows = await self._sql["outbox/release"].fetch(conn, **_held(held), delay=delay, now=now)
        return {row["id"] for row in rows}

    async def renew(self, conn: Connection, held: Sequence[tuple[int, UUID]], *, lease: timedelta) -> set[int]:
        """Hold on for a whole lease; what is missing from the answer is held by nobody or by another."""
        rows = await self._sql["outbox/renew"].fetch(conn, **_held(held), lease=lease)
        return {row["id"] for row in rows}

    async def next_due(self, conn: Connection, patterns: Sequence[str], *, now: datetime | None) -> timedelta | None:
        """How long until something that is not due yet will be."""
        wait: timedelta | None = await self._sql["outbox/next_due"].fetchval(conn, patterns=patterns, now=now)
        return wait


def _claim_values(request: ClaimRequest, now: datetime | None) -> dict[str, Any]:
    return {
        "patterns": [road.pattern for road in request.roads],
        "crash_limits": [road.max_crashes for road in request.roads],
        "rooms": [road.has_room for road in request.roads],
        "windows": [road.idempotency_window for road in request.roads],
        "topics": request.topics,
        "partitions": request.partitions,
        "isolated": request.isolated,
        "limit": request.limit,
        "lease": request.lease,
        "token": request.token,
        "server": request.server,
        "host": request.host,
        "now": now,
    }


def _held(held: Sequence[tuple[int, UUID]]) -> dict[str, Any]:
    return {"ids": [id for id, _ in held], "tokens": [token for _, token in held]}  # noqa: A001  the row's own word


_STATES = {state.value: state for state in OutboxState}


def _claimed(row: Record) -> Claimed:
    values = list(row.values())[:20]
    values[7] = _STATES[values[7]]
    return Claimed(*values)
