"""Lock slots as rows of PostgreSQL: the default, because it needs nothing that is not there already.

Every verb is one statement, and more only while hosts disagree on N. It runs on a connection of our own, not on the
pool of the work: a pool resets a connection after each use, which would double the round trips, and may be used up by
the very work that wants a lock. However many want one at once, they share a few: each could use up what the database
allows, and then nobody could even renew.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from interlock.store.lock_slot import LockSlots, Unsettled, lock_service
from interlock.store.per_loop import PerLoop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import timedelta
    from uuid import UUID

    from interlock.model.lease import Grant, Held, Holder, Refusal, SlotRequest
    from interlock.store.connection import Connection
    from interlock.store.database import Database

T = TypeVar("T")
MOST_CONNECTIONS = 4  # of an event loop, beside the keeper's


class PostgresLocks:
    def __init__(self, database: Database, namespace: str) -> None:
        self._database, self._slots = database, LockSlots(database.sql, namespace)
        self._connections: PerLoop[_Connections] = PerLoop(_Connections, _close_all)

    @property
    def where(self) -> str:
        return self._database.where

    async def acquire(self, request: SlotRequest) -> Grant | Refusal:
        return await self._on_connection(lambda conn: self._acquire(conn, request))

    async def extend(self, held: Sequence[Held]) -> dict[UUID, timedelta]:
        return await self._on_connection(lambda conn: self._slots.extend_if_held(conn, held))

    async def release(self, name: str, token: UUID, at_least: timedelta) -> bool:
        return await self._on_connection(lambda conn: self._slots.release_if_held(conn, name, token, at_least))

    async def holders(self, name: str | None = None) -> list[Holder]:
        return await self._on_connection(lambda conn: self._slots.list(conn, name))

    async def force_release(self, name: str, slot: int) -> Holder | None:
        return await self._on_connection(lambda conn: self._slots.force_release(conn, name, slot))

    def server_of(self, name: str) -> str:  # noqa: ARG002  it is the same for all
        return self.where

    async def line(self) -> PostgresLine:
        with lock_service(self.where):
            return PostgresLine(await self._database.connect("lock keeper"), self._slots, self.where)

    async def close(self) -> None:
        await self._connections.close()

    async def _acquire(self, conn: Connection, request: SlotRequest) -> Grant | Refusal:
        answer = await self._slots.acquire(conn, request)
        if not isinstance(answer, Unsettled):
            return answer
        async with self._database.tick_on(conn):
            agreement = await self._slots.agree(conn, request.name, request.slots, request.start)
            return await self._slots.acquire_agreed(conn, request, agreement)

    async def _on_connection(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """On an idle connection or a new one; one that failed in any way is not used again."""
        ours = self._connections.get()
        with lock_service(self.where):
            async with ours.turns:
                conn = await self._idle_or_new(ours.idle)
                try:
                    answer = await work(conn)
                except BaseException:
                    conn.terminate()
                    raise
                ours.idle.append(conn)
                return answer

    async def _idle_or_new(self, idle: list[Connection]) -> Connection:
        while idle:
            if not (conn := idle.pop()).is_closed():
                return conn
        return await self._database.connect("locks")


class _Connections:
    """Those of one event loop that nobody uses now, and how many more may be in use."""

    def __init__(self) -> None:
        self.idle: list[Connection] = []
        self.turns = asyncio.Semaphore(MOST_CONNECTIONS)


class PostgresLine:
    """The keeper's own connection."""

    def __init__(self, conn: Connection, slots: LockSlots, where: str) -> None:
        self._conn, self._slots, self._where = conn, slots, where

    async def extend(self, held: Sequence[Held]) -> dict[UUID, timedelta]:
        with lock_service(self._where):
            return await self._slots.extend_if_held(self._conn, held)

    async def release(self, name: str, token: UUID, at_least: timedelta) -> bool:
        with lock_service(self._where):
            return await self._slots.release_if_held(self._conn, name, token, at_least)

    def server_of(self, name: str) -> str:  # noqa: ARG002  it is the same for all
        return self._where

    async def close(self) -> None:
        self._conn.terminate()


async def _close_all(ours: _Connections) -> None:
    while ours.idle:
        await ours.idle.pop().close(timeout=1)
