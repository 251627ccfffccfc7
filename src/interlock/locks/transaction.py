"""A hold that lives and dies with the user's own PostgreSQL transaction.

The hold is the row lock on a slot: it needs no lease, no renewal and no release, and it is there exactly as long as the
transaction that also writes the work it protects. The rows are made beforehand, on a connection of our own, because
rows that the user's transaction inserted would be invisible to all others until it commits.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from interlock.errors import InvalidSetting, LockTaken
from interlock.locks.options import checked_slots
from interlock.store.lock_slot import LockSlots
from interlock.trains.names import checked_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from interlock.locks.settings import LockSettings
    from interlock.model.lease import SlotInTransaction
    from interlock.store.connection import Connection
    from interlock.store.database import Database


class TransactionHolds:
    def __init__(self, settings: LockSettings, namespace: str, database: Callable[[], Awaitable[Database]]) -> None:
        self._settings, self._namespace, self._database = settings, namespace, database
        self._prepared: set[tuple[str, int]] = set()

    async def take(self, conn: Connection, name: str, slots: int) -> SlotInTransaction:
        """The slot, or `LockTaken`; it never waits."""
        found = await self.try_take(conn, name, slots)
        if found is None:
            raise LockTaken(name=name, slots=slots)
        return found

    async def try_take(self, conn: Connection, name: str, slots: int) -> SlotInTransaction | None:
        self._refuse_other_services()
        checked_name("name", name)
        checked_slots(slots)
        database = await self._database()
        rows = LockSlots(database.sql, self._namespace)
        if (name, slots) in self._prepared and (held := await self._locked(rows, conn, name, slots)):
            return held
        async with database.connection() as own:
            await rows.prepare(own, name, slots)
        self._prepared.add((name, slots))
        return await self._locked(rows, conn, name, slots)

    async def _locked(self, rows: LockSlots, conn: Connection, name: str, slots: int) -> SlotInTransaction | None:
        start = random.randrange(slots)  # noqa: S311  it spreads load; nothing secret hangs on it
        return await rows.hold_in_transaction(conn, name, slots, start)

    def _refuse_other_services(self) -> None:
        if self._settings.lock_backend != "postgres":
            expected = "'postgres': a row lock is invisible to those who hold the same name in another lock service"
            raise InvalidSetting(setting="lock_backend", found=self._settings.lock_backend, expected=expected)
