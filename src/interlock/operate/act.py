"""How every command runs: permission, one transaction, its guarded write, its audit rows, and whom it wakes.

All of it commits together or not at all. A dry run does the same and takes it back, so that it answers exactly what
would be changed; it writes no audit row and wakes nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, TypeVar

from interlock.model.act import CODE, Change
from interlock.model.bounds import checked_remark
from interlock.observe.events.operate import Acted
from interlock.store.audit import Audit
from interlock.store.notify import notify_in
from interlock.store.rehearse import rehearse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import datetime
    from typing import Any

    from interlock.manifests.declare import Declarations
    from interlock.model.act import Actor, Permission
    from interlock.model.execution import Policy
    from interlock.observe.bus import Emit
    from interlock.observe.events.base import Event
    from interlock.runtime.clock import Clock
    from interlock.store.connection import Connection
    from interlock.store.database import Database
    from interlock.store.sql import Catalog
    from interlock.trains.options import TrainOptions

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What commands work with; the app has it all."""

    database: Callable[[], Awaitable[Database]]
    clock: Clock
    emit: Emit
    policy: Policy
    train_options: Callable[[str], TrainOptions | None]
    declarations: Declarations
    app: str | None
    max_input_bytes: int


@dataclass(slots=True)
class Act:
    """One command inside its transaction."""

    conn: Connection
    sql: Catalog
    now: datetime | None
    actor: Actor
    note: str | None
    changes: list[Change] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def changed(
        self,
        action: str,
        target_kind: str,
        target: object,
        *,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep for the audit what was changed."""
        self.changes.append(Change(action, target_kind, str(target), before, after))

    def wake(self, *topics: str) -> None:
        """Tell the loops of other servers with the commit."""
        self.notices += topics

    async def finish(self, database: Database) -> None:
        if self.changes:
            audit = Audit(self.sql)
            await audit.write(self.conn, self.changes, actor=self.actor.name, via=self.actor.via, note=self.note)
        if self.notices:
            await notify_in(self.conn, database, self.notices)


class Acting:
    """What all commands have in common: on whose behalf, for which reason, and whether it is meant."""

    def __init__(self, means: Means, *, actor: Actor = CODE, note: str | None = None, dry_run: bool = False) -> None:
        self._means, self._actor, self._note, self._dry_run = means, actor, note, dry_run

    def by(self, actor: Actor, *, note: str | None = None, dry_run: bool = False) -> Self:
        """The same commands on behalf of somebody, with the reason that goes into the audit."""
        said = None if note is None else checked_remark("note", note)
        return type(self)(self._means, actor=actor, note=said, dry_run=dry_run)

    async def adatabase(self) -> Database:
        """The database that the commands write to."""
        return await self._means.database()

    async def _act(self, permission: Permission, work: Callable[[Act], Awaitable[T]]) -> T:
        self._actor.require(permission)
        database = await self._means.database()

        async def perform(conn: Connection) -> tuple[T, Act]:
            act = Act(conn, database.sql, self._means.clock.injected(), self._actor, self._note)
            answer = await work(act)
            await act.finish(database)
            return answer, act

        if self._dry_run:
            return (await rehearse(database, perform))[0]
        answer, act = await database.retrying(perform)
        self._tell(act)
        return answer

    def _tell(self, act: Act) -> None:
        for event in act.events:
            self._means.emit(event)
        if act.changes:
            first = act.changes[0]
            self._means.emit(
                Acted(
                    actor=self._actor.name,
                    via=self._actor.via,
                    action=first.action,
                    target_kind=first.target_kind,
                    target=first.target,
                    targets=len(act.changes),
                )
            )
