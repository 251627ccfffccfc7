"""Messages in PostgreSQL, over two connections of the drain's own: one claims, one settles."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from interlock import failpoints
from interlock.model.message import Answer, Settling
from interlock.store.line import Line
from interlock.store.outbox import OutboxMessages
from interlock.store.outbox_review import OutboxReview
from interlock.store.outbox_topic import OutboxTopics

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from datetime import timedelta
    from uuid import UUID

    from interlock.model.message import ClaimRequest, Claims, Settlement
    from interlock.runtime.clock import Clock
    from interlock.store.connection import Connection
    from interlock.store.database import Database


class PostgresMessages:
    """See MessageStore."""

    def __init__(self, database: Database, *, clock: Clock, host: str | None = None) -> None:
        self._database, self._clock, self._host = database, clock, host
        self._claiming, self._settling = (Line(database, f"outbox {verb}", by_key=True) for verb in ("claim", "settle"))
        self._messages, self._topics = OutboxMessages(database.sql), OutboxTopics(database.sql)
        self._review = OutboxReview(database.sql)

    async def claim(self, request: ClaimRequest) -> Claims:
        async with self._claiming.connection() as conn:
            claims = await self._messages.claim(conn, request, now=self._clock.injected())
        if claims.messages:
            await failpoints.reach("outbox.after_claim")
        return claims

    async def settle(self, settlements: Sequence[Settlement]) -> list[Answer]:
        plain = [each for each in settlements if each.outcome is Settling.DELIVERED]
        async with self._settling.connection() as conn:
            applied = await self._messages.deliver(conn, plain, now=self._clock.injected()) if plain else set()
            if len(applied) == len(settlements):
                return [Answer.APPLIED] * len(settlements)
            others = [each for each in settlements if (each.id, each.token) not in applied]
            answers = iter(await self._messages.settle(conn, others, host=self._host, now=self._clock.injected()))
        return [Answer.APPLIED if (each.id, each.token) in applied else next(answers) for each in settlements]

    async def release(self, held: Sequence[tuple[int, UUID]], delay: timedelta) -> set[int]:
        async with self._by_key() as conn:
            return await self._messages.release(conn, held, delay=delay, now=self._clock.injected())

    async def renew(self, held: Sequence[tuple[int, UUID]], lease: timedelta) -> set[int]:
        async with self._by_key() as conn:
            return await self._messages.renew(conn, held, lease=lease)

    async def next_due(self, patterns: Sequence[str]) -> timedelta | None:
        async with self._claiming.connection() as conn:
            return await self._messages.next_due(conn, patterns, now=self._clock.injected())

    async def open_breaker(self, topic: str, pause: timedelta, most: timedelta) -> timedelta | None:
        async with self._database.connection() as conn:
            return await self._topics.open(conn, topic, pause=pause, most=most, now=self._clock.injected())

    async def close_breaker(self, topic: str) -> bool:
        async with self._database.connection() as conn:
            return await self._topics.close(conn, topic)

    async def tags(self) -> list[Sequence[str]]:
        async with self._database.connection() as conn:
            return [worker["tags"] for worker in await self._review.workers(conn)]

    @asynccontextmanager
    async def _by_key(self) -> AsyncGenerator[Connection, None]:
        async with self._database.connection() as conn, self._database.tick_on(conn, by_index=True):
            yield conn

    async def close(self) -> None:
        await self._claiming.close()
        await self._settling.close()
