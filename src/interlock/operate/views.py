"""Every list and every detail that people look at: the one set for the command line, the dashboard and the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from interlock.errors import UnknownDeadLetter, UnknownGroup, UnknownManifest, UnknownWork
from interlock.model.act import Permission
from interlock.model.lifecycle import ExecutionState
from interlock.operate.arguments import known_train
from interlock.store.known_train import KnownTrains
from interlock.store.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from interlock.model.act import Actor
    from interlock.model.dead_letter import DeadLetter
    from interlock.model.reading import (
        AuditLine,
        DeadLetterDetail,
        EntryDetail,
        EntryLine,
        ExecutionDetail,
        ExecutionLine,
        GroupLine,
        ManifestDetail,
        ManifestLine,
        ManifestPlan,
        Page,
    )
    from interlock.runtime.clock import Clock
    from interlock.store.connection import Connection
    from interlock.store.database import Database
    from interlock.store.known_train import KnownTrain
    from interlock.trains.registry import Registry

T = TypeVar("T")

LINES = 50
ACTIVE = frozenset({ExecutionState.PENDING, ExecutionState.IN_PROGRESS})


class Views:
    """Pages go by a key: `page.next` is the `after` (for lists that begin with the latest, `before`) of the next."""

    def __init__(self, database: Callable[[], Awaitable[Database]], *, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def seen_by(self, actor: Actor) -> Views:
        """The same for somebody who may look."""
        actor.require(Permission.VIEW)
        return self

    async def manifests(
        self,
        *,
        group: str | None = None,
        train: str | None = None,
        app: str | None = None,
        enabled: bool | None = None,
        search: str | None = None,
        after: str = "",
        limit: int = LINES,
        counted: bool = False,
    ) -> Page[ManifestLine]:
        """By external id."""
        return await self._read(
            lambda conn, reading: reading.manifests(
                conn,
                group=group,
                train=train,
                app=app,
                enabled=enabled,
                search=search,
                after=after,
                limit=limit,
                counted=counted,
            )
        )

    async def manifest(self, external_id: str, *, history: int = 10) -> ManifestDetail:
        found = await self._read(lambda conn, reading: reading.manifest(conn, external_id, history=history))
        if found is None:
            raise UnknownManifest(name=external_id)
        return found

    async def plans(self, external_id: str | None = None, *, group: str | None = None) -> Sequence[ManifestPlan]:
        """When manifests fire and after whom: of one, of a group, or of all."""
        now = self._clock.injected()
        found = await self._read(
            lambda conn, reading: reading.plans(conn, external_id=external_id, group=group, now=now)
        )
        if external_id is not None and not found:
            raise UnknownManifest(name=external_id)
        return found

    async def groups(self) -> Sequence[GroupLine]:
        return await self._read(lambda conn, reading: reading.groups(conn))

    async def group(self, name: str) -> GroupLine:
        found = await self._read(lambda conn, reading: reading.groups(conn, name))
        if not found:
            raise UnknownGroup(name=name, known=[group.name for group in await self.groups()])
        return found[0]

    async def queue(
        self,
        *,
        state: str | None = "queued",
        train: str | None = None,
        group: str | None = None,
        manifest: str | None = None,
        kind: str | None = None,
        after: int = 0,
        limit: int = LINES,
        counted: bool = False,
    ) -> Page[EntryLine]:
        """The oldest entries first; with `state=None` also those that left the queue within the last hour."""
        return await self._read(
            lambda conn, reading: reading.queue(
                conn,
                state=state,
                train=train,
                group=group,
                manifest=manifest,
                kind=kind,
                lineage=None,
                after=after,
                limit=limit,
                counted=counted,
            )
        )

    async def entry(self, entry_id: int) -> EntryDetail:
        found = await self._read(lambda conn, reading: reading.entry(conn, entry_id))
        if found is None:
            raise UnknownWork(name=str(entry_id))
        return found

    async def executions(
        self,
        *,
        state: str | None = None,
        active: bool | None = None,
        train: str | None = None,
        group: str | None = None,
        manifest: str | None = None,
        kind: str | None = None,
        failure: str | None = None,
        before: int | None = None,
        limit: int = LINES,
        counted: bool = False,
    ) -> Page[ExecutionLine]:
        """The latest first."""
        if state in ACTIVE:
            active = True  # the few active ones have an index of their own
        return await self._read(
            lambda conn, reading: reading.executions(
                conn,
                state=state,
                active=active,
                train=train,
                group=group,
                manifest=manifest,
                kind=kind,
                failure=failure,
                lineage=None,
                before=before,
                limit=limit,
                counted=counted,
            )
        )

    async def execution(self, execution_id: int) -> ExecutionDetail:
        found = await self._read(lambda conn, reading: reading.execution(conn, execution_id))
        if found is None:
            raise UnknownWork(name=str(execution_id))
        return found

    async def dead_letters(
        self,
        *,
        state: str | None = "awaiting_intervention",
        train: str | None = None,
        manifest: str | None = None,
        group: str | None = None,
        failure: str | None = None,
        after: int = 0,
        limit: int = LINES,
        counted: bool = False,
    ) -> Page[DeadLetter]:
        """The oldest first; with `state=None` also those that were resolved."""
        return await self._read(
            lambda conn, reading: reading.dead_letters(
                conn,
                state=state,
                train=train,
                manifest=manifest,
                group=group,
                failure=failure,
                executions=None,
                after=after,
                limit=limit,
                counted=counted,
            )
        )

    async def dead_letter(self, dead_letter_id: int) -> DeadLetterDetail:
        found = await self._read(lambda conn, reading: reading.dead_letter(conn, dead_letter_id))
        if found is None:
            raise UnknownDeadLetter(name=str(dead_letter_id))
        return found

    async def audit(
        self,
        *,
        target_kind: str | None = None,
        target: str | None = None,
        actor: str | None = None,
        action: str | None = None,
        before: int | None = None,
        limit: int = LINES,
        counted: bool = False,
    ) -> Page[AuditLine]:
        """The latest acts first."""
        return await self._read(
            lambda conn, reading: reading.audit(
                conn,
                target_kind=target_kind,
                target=target,
                actor=actor,
                action=action,
                before=before,
                limit=limit,
                counted=counted,
            )
        )

    async def train(self, name: str, trains: Registry) -> KnownTrain:
        """What this code, else some server, knows of a train."""
        database = await self._database()
        async with database.connection() as conn:
            return await known_train(conn, database.sql, trains, name)

    async def trains(self) -> Sequence[str]:
        """The names of the trains that servers have announced."""
        database = await self._database()
        async with database.connection() as conn:
            return await KnownTrains(database.sql).names(conn)

    async def _read(self, read: Callable[[Connection, Reading], Awaitable[T]]) -> T:
        database = await self._database()
        async with database.connection() as conn:
            return await read(conn, Reading(database.sql))
