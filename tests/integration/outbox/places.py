"""The places where messages are kept, behind one face for the tests."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import asyncpg

from interlock.model.message import ClaimRequest, NewMessage, Road
from interlock.outbox.emitter import expression_of
from interlock.outbox.memory import MemoryMessages
from interlock.outbox.postgres import PostgresMessages
from interlock.runtime.clock import DatabaseClock
from interlock.store.adapters.asyncpg import AsyncpgAdapter
from interlock.store.adapters.protocol import run
from interlock.store.database import Database
from interlock.store.outbox import OutboxMessages
from interlock.store.settings import StoreSettings

LEASE = timedelta(seconds=30)


class MemoryPlace:
    def __init__(self) -> None:
        self.store = MemoryMessages()

    def stores(self, count: int):
        """As many workers would use."""
        return [self.store] * count

    async def publish(self, topic: str = "t", payload: str = "1", **options):
        return self.store.publish([NewMessage(topic, payload, **options)])

    async def row(self, id: int):  # noqa: A002  the row's own word
        row = self.store.rows[id]
        names = ("claims", "attempts", "crashes", "failure", "record_id")
        return {"state": str(row.state), **{name: getattr(row, name) for name in names}}

    async def history(self) -> None:
        """There is none in memory."""

    async def lose_claims(self) -> None:
        """As if every worker had died, and the leases had run out."""
        for row in self.store.rows.values():
            if row.token is not None:
                row.available_at = row.published_at

    async def age(self, by: timedelta) -> None:
        for row in self.store.rows.values():
            row.first_emitted_at = row.first_emitted_at and row.first_emitted_at - by
            row.expires_at = row.expires_at and row.expires_at - by
            row.available_at -= by

    async def probe_now(self) -> None:
        for breaker in self.store.breakers.values():
            breaker.probe_at -= timedelta(hours=1)

    async def park(self, topic: str) -> None:
        self.store.parked.add(topic)

    async def close(self) -> None: ...


class PostgresPlace:
    def __init__(self, dsn: str) -> None:
        self._database = Database(dsn, StoreSettings(dsn=dsn))
        self.store = PostgresMessages(self._database, clock=DatabaseClock(), host="here")
        self._others: list[PostgresMessages] = []
        self._dsn, self.conn = dsn, None

    async def open(self):
        self.conn = await asyncpg.connect(self._dsn)
        return self

    def stores(self, count: int):
        self._others = [PostgresMessages(self._database, clock=DatabaseClock()) for _ in range(count)]
        return self._others

    async def publish(self, topic: str = "t", payload: str = "1", **options):
        steps = OutboxMessages(self._database.sql).publish([NewMessage(topic, payload, **options)], now=None)
        return await run(AsyncpgAdapter(self.conn), steps)

    async def row(self, id: int):  # noqa: A002  see above
        row = await self.conn.fetchrow("SELECT * FROM interlock.outbox WHERE id = $1", id)
        return {name: row[name] for name in ("state", "claims", "attempts", "crashes", "failure", "record_id")}

    async def history(self) -> list[str]:
        return [row["outcome"] for row in await self.conn.fetch("SELECT outcome FROM interlock.outbox_attempt")]

    async def lose_claims(self) -> None:
        await self.conn.execute("UPDATE interlock.outbox SET available_at = published_at WHERE claim_token IS NOT NULL")

    async def age(self, by: timedelta) -> None:
        await self.conn.execute(
            "UPDATE interlock.outbox SET first_emitted_at = first_emitted_at - $1::interval,"
            " expires_at = expires_at - $1::interval, available_at = available_at - $1::interval",
            by,
        )

    async def probe_now(self) -> None:
        await self.conn.execute("UPDATE interlock.outbox_topic SET probe_at = probe_at - interval '1 hour'")

    async def park(self, topic: str) -> None:
        await self.conn.execute("INSERT INTO interlock.outbox_topic (topic, parked) VALUES ($1, true)", topic)

    async def close(self) -> None:
        for store in (self.store, *self._others):
            await store.close()
        await self._database.close()
        await self.conn.close()


def request(*patterns: str, limit: int = 100, **options) -> ClaimRequest:
    crashes, window = options.pop("max_crashes", 3), options.pop("window", None)
    holds = options.pop("holds", True)
    roads = [Road(expression_of(each), crashes, window, holds) for each in patterns or ("*",)]
    return ClaimRequest(roads, limit, LEASE, uuid4(), **options)


def lanes(*patterns: str, **options) -> ClaimRequest:
    return request(*patterns, buckets=list(range(1024)), stretch=100, **options)
