"""Taking a slot away from whoever holds it: an act of a person, with its row in the audit.

Where slots are rows of PostgreSQL both commit together. Another lock service frees the slot on its own, so the row is
written right after, in a transaction that is open already: while the database cannot be reached nothing is taken away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.model.act import Change
from interlock.store.audit import Audit
from interlock.store.lock_slot import LockSlots, lock_service

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from interlock.locks.backend import LockBackend
    from interlock.model.act import Actor
    from interlock.model.lease import Holder
    from interlock.store.connection import Connection
    from interlock.store.database import Database


class AuditedRelease:
    def __init__(self, database: Callable[[], Awaitable[Database]], namespace: str, *, rows: bool) -> None:
        self._database, self._namespace, self._rows = database, namespace, rows

    async def __call__(
        self, backend: LockBackend, name: str, slot: int, *, actor: Actor, note: str | None
    ) -> Holder | None:
        """Who held the slot; None says that nobody did, and leaves no row."""
        database = await self._database()
        with lock_service(database.where):
            async with database.transaction() as conn:
                freed = await self._free(conn, database, backend, name, slot)
                if freed is not None:
                    change = self._change(freed)
                    await Audit(database.sql).write(conn, [change], actor=actor.name, via=actor.via, note=note)
        return freed

    async def _free(
        self, conn: Connection, database: Database, backend: LockBackend, name: str, slot: int
    ) -> Holder | None:
        if self._rows:
            return await LockSlots(database.sql, self._namespace).force_release(conn, name, slot)
        return await backend.force_release(name, slot)

    def _change(self, freed: Holder) -> Change:
        before = {"owner": freed.owner, "fence": str(freed.fence), "acquired_at": freed.acquired_at.isoformat()}
        where = {"namespace": self._namespace, "slot": freed.slot}
        return Change("release", "lock", freed.name, before={**where, **before}, after=None)
