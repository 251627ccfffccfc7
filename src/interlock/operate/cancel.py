"""Cancelling work that waits or runs, by manifest, by group, by execution or by entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.errors import UnknownGroup, UnknownManifest, UnknownWork
from interlock.model.execution import Scope
from interlock.observe.events.work import CancelRequested
from interlock.store.cancellation import Cancellations
from interlock.store.notify import notify_in
from interlock.store.switch import Switches
from interlock.worker.report import named

if TYPE_CHECKING:
    from interlock.observe.bus import Emit
    from interlock.runtime.clock import Clock
    from interlock.store.cancellation import Cancelled
    from interlock.store.connection import Connection
    from interlock.store.database import Database


class Cancelling:
    def __init__(self, database: Database, *, clock: Clock, emit: Emit, actor: str | None = None) -> None:
        self._database, self._clock, self._emit, self._actor = database, clock, emit, actor
        self._cancellations, self._switches = Cancellations(database.sql), Switches(database.sql)

    async def manifest(self, external_id: str) -> Cancelled:
        """Everything of this manifest that waits or runs."""
        async with self._database.connection() as conn:
            found = await self._switches.find(conn, external_id=external_id)
        if found.manifest_id is None:
            raise UnknownManifest(name=external_id)
        return await self._cancel(Scope(manifest_id=found.manifest_id))

    async def group(self, name: str) -> Cancelled:
        """Everything in this group that waits or runs."""
        async with self._database.connection() as conn:
            found = await self._switches.find(conn, group=name)
        if found.group_id is None:
            raise UnknownGroup(name=name)
        return await self._cancel(Scope(group_id=found.group_id))

    async def work(self, *, execution_id: int | None = None, entry_id: int | None = None) -> Cancelled:
        """One piece of work: whatever attempt it is at, and the attempts to come."""
        async with self._database.connection() as conn:
            lineage = await self._cancellations.lineage(conn, execution_id=execution_id, entry_id=entry_id)
        if lineage is None:
            raise UnknownWork(name=str(execution_id if entry_id is None else entry_id))
        return await self._cancel(Scope(lineage=lineage))

    async def _cancel(self, scope: Scope) -> Cancelled:
        cancelled = await self._database.retrying(lambda conn: self._cancel_in(conn, scope))
        self._emit(
            CancelRequested(
                actor=self._actor,
                entries=len(cancelled.entries),
                ended=len(cancelled.ended),
                asked=len(cancelled.asked),
            )
        )
        return cancelled

    async def _cancel_in(self, conn: Connection, scope: Scope) -> Cancelled:
        cancelled = await self._cancellations.cancel(conn, scope, actor=self._actor, now=self._clock.injected())
        notices = list(named("cancel", cancelled.asked))
        notices += named("ended", cancelled.lineages)
        if cancelled.entries or cancelled.ended:
            notices += ["work", "manifest"]
        await notify_in(conn, self._database, notices)
        return cancelled
