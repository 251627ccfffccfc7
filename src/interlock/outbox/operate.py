"""What a person does about messages: one transaction each, with its row in the audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interlock.model.act import Change
from interlock.store.audit import Audit
from interlock.store.outbox_review import OutboxReview
from interlock.store.outbox_topic import OutboxTopics

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from interlock.store.database import Database


@dataclass(frozen=True, slots=True)
class Act:
    """Who acts, by which way, and why; a dry run changes nothing."""

    actor: str
    via: str
    note: str | None
    dry_run: bool = False


async def redrive(database: Database, act: Act, chosen: Mapping[str, Any], *, now: datetime | None) -> dict[int, bool]:
    """Let what was chosen be delivered again; answers which of them come out of order."""
    async with database.connection() as conn:
        transaction = conn.transaction()
        await transaction.start()
        try:
            redriven = await OutboxReview(database.sql).redrive(conn, **chosen, actor=act.actor, note=act.note, now=now)
            changes = [
                Change("redrive", "message", str(number), after={"out_of_order": late})
                for number, late in redriven.items()
            ]
            await _write(database, conn, act, changes)
        except BaseException:
            await transaction.rollback()
            raise
        await (transaction.rollback() if act.dry_run else transaction.commit())
    return redriven


async def park(database: Database, act: Act, topic: str, *, parked: bool) -> bool:
    """Switch the claiming of a topic off or on; False says that it was so already."""
    async with database.transaction() as conn:
        changed = await OutboxTopics(database.sql).park(conn, topic, parked=parked, actor=act.actor)
        if changed:
            verb = "park" if parked else "unpark"
            await _write(
                database, conn, act, [Change(verb, "topic", topic, {"parked": not parked}, {"parked": parked})]
            )
    return changed


async def _write(database: Database, conn: Any, act: Act, changes: list[Change]) -> None:
    if changes:
        await Audit(database.sql).write(conn, changes, actor=act.actor, via=act.via, note=act.note)
