"""Old history deleted by a person at once, as every server does it by itself in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.model.act import Change, Permission
from interlock.store.audit import Audit

if TYPE_CHECKING:
    from interlock.model.act import Actor
    from interlock.store.connection import Connection
    from interlock.store.database import Database
    from interlock.upkeep.forgotten import Forgotten
    from interlock.upkeep.retention import Retention


async def forget_history(database: Database, retention: Retention, actor: Actor, note: str | None) -> Forgotten:
    """Batch after batch; each has its row in the audit, in the transaction that deletes."""
    actor.require(Permission.PRUNE)
    audit = Audit(database.sql)

    async def witness(conn: Connection, batch: Forgotten) -> None:
        changes = [
            Change("forget", "history", kind, after={"rows": count}) for kind, count in batch.rows.items() if count
        ]
        if changes:
            await audit.write(conn, changes, actor=actor.name, via=actor.via, note=note)

    return await retention.run(witness)
