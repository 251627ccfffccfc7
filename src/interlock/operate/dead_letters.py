"""Dead letters in the hands of people: looked at, queued again, or closed with a note."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.errors import AlreadyResolved, UnknownDeadLetter
from interlock.observe.events.work import DeadLetterResolved
from interlock.runtime.portal import portal
from interlock.store.dead_letter import DeadLetters
from interlock.store.notify import notify_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from interlock.model.dead_letter import DeadLetter
    from interlock.model.execution import Policy
    from interlock.observe.bus import Emit
    from interlock.runtime.clock import Clock
    from interlock.store.connection import Connection
    from interlock.store.database import Database


class DeadLetterDesk:
    """Of two who resolve the same dead letter at once, one wins and the other gets AlreadyResolved."""

    def __init__(
        self, database: Callable[[], Awaitable[Database]], *, policy: Policy, clock: Callable[[], Clock], emit: Emit
    ) -> None:
        self._database, self._policy, self._clock, self._emit = database, policy, clock, emit

    async def arequeue(self, dead_letter_id: int, *, actor: str | None = None, note: str | None = None) -> int:
        """Queue the work again from its first attempt; answers the new entry."""
        database, now = await self._database(), self._clock().injected()

        async def work(conn: Connection) -> int:
            entry = await DeadLetters(database.sql).requeue_if_open(
                conn, dead_letter_id, actor=actor, note=note, policy=self._policy, now=now
            )
            if entry is None:
                await self._refuse(conn, database, dead_letter_id)
            await notify_in(conn, database, ["work"])
            return entry or 0

        entry = await database.retrying(work)
        self._emit(DeadLetterResolved(dead_letter_id=dead_letter_id, state="retried", actor=actor, entry_id=entry))
        return entry

    async def aacknowledge(self, dead_letter_id: int, *, note: str | None = None, actor: str | None = None) -> None:
        """Close it without running anything; its manifest goes on with its schedule."""
        database, now = await self._database(), self._clock().injected()

        async def work(conn: Connection) -> None:
            letters = DeadLetters(database.sql)
            if not await letters.acknowledge_if_open(conn, dead_letter_id, actor=actor, note=note, now=now):
                await self._refuse(conn, database, dead_letter_id)
            await notify_in(conn, database, ["manifest"])

        await database.retrying(work)
        self._emit(DeadLetterResolved(dead_letter_id=dead_letter_id, state="acknowledged", actor=actor))

    async def alist(self, *, after: int = 0, limit: int = 100) -> list[DeadLetter]:
        """Those that wait for a person, oldest first."""
        database = await self._database()
        async with database.connection() as conn:
            return await DeadLetters(database.sql).list_open(conn, after=after, limit=limit)

    async def aget(self, dead_letter_id: int) -> DeadLetter:
        database = await self._database()
        async with database.connection() as conn:
            found = await DeadLetters(database.sql).get(conn, dead_letter_id)
        if found is None:
            raise UnknownDeadLetter(name=str(dead_letter_id))
        return found

    def requeue(self, dead_letter_id: int, *, actor: str | None = None, note: str | None = None) -> int:
        """The blocking twin of `arequeue`."""
        return portal.call(self.arequeue, dead_letter_id, actor=actor, note=note)

    def acknowledge(self, dead_letter_id: int, *, note: str | None = None, actor: str | None = None) -> None:
        """The blocking twin of `aacknowledge`."""
        portal.call(self.aacknowledge, dead_letter_id, note=note, actor=actor)

    def list(self, *, after: int = 0, limit: int = 100) -> list[DeadLetter]:
        """The blocking twin of `alist`."""
        return portal.call(self.alist, after=after, limit=limit)

    def get(self, dead_letter_id: int) -> DeadLetter:
        """The blocking twin of `aget`."""
        return portal.call(self.aget, dead_letter_id)

    async def _refuse(self, conn: Connection, database: Database, dead_letter_id: int) -> None:
        found = await DeadLetters(database.sql).get(conn, dead_letter_id)
        if found is None:
            raise UnknownDeadLetter(name=str(dead_letter_id))
        raise AlreadyResolved(dead_letter_id=dead_letter_id, state=found.state.value, resolved_by=found.resolved_by)
