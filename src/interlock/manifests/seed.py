"""Declarations brought to the database when a server starts, and pruned when no server declares them any more.

Everything happens in one transaction, under one lock of all who declare, after the server has registered: whoever
prunes sees either no server, or a server that has yet to speak, or all that it declares.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.manifests.group_changes import prepare_groups
from interlock.manifests.write import Writer, worded
from interlock.model.manifest import Origin
from interlock.observe.events.manifest import ManifestPruned, ManifestsSeeded
from interlock.runtime.clock import DatabaseClock
from interlock.runtime.loop import Loop
from interlock.runtime.supervisor import LoopComponent
from interlock.store.declaration import DeclaredManifests, declaring
from interlock.store.declaration_row import interval
from interlock.store.manifest_group import ManifestGroups
from interlock.store.notify import notify_in
from interlock.store.train import AnnouncedTrains

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from interlock.manifests.declare import Declarations
    from interlock.manifests.group_changes import GroupChanges
    from interlock.manifests.write import Worded, Written
    from interlock.observe.bus import Emit
    from interlock.runtime.clock import Clock
    from interlock.store.connection import Connection
    from interlock.store.database import Database
    from interlock.store.declaration_row import Columns
    from interlock.trains.registry import AnyTrain

TRAINS_ARE_FORGOTTEN_AFTER = timedelta(days=30)
LOOK_AT_ONESELF = timedelta(seconds=2)
"""How soon a server notices that it goes by a new id; nothing is asked of the database for that."""


@dataclass(frozen=True, slots=True)
class Seeded:
    """What one seeding did."""

    created: int
    changed: int
    unchanged: int
    pruned: tuple[str, ...]


class Seeding:
    """Seeds the declarations of one app. A nameless app, and one without a server, prunes nothing."""

    name = "declarations"

    def __init__(
        self,
        database: Database,
        declarations: Declarations,
        *,
        app: str | None,
        server: Callable[[], UUID | None],
        prune: bool,
        interval: timedelta,
        emit: Emit,
        clock: Clock | None = None,
    ) -> None:
        self._database, self._declarations, self._app = database, declarations, app
        self._server, self._prunes, self._interval, self._emit = server, prune, interval, emit
        self._clock = clock or DatabaseClock()
        self._rows, self._groups = DeclaredManifests(database.sql), ManifestGroups(database.sql)
        self._trains = AnnouncedTrains(database.sql)
        self._announced: UUID | None = None
        self._prune_at = 0.0

    async def seed(self, *, only_new: bool = False) -> Seeded:
        """Write what code declares; only what it declares differently than before changes anything.

        With `only_new` what is there stays as it is, whatever this code says of it.
        """
        server, words = self._server(), worded(self._declarations.manifests.values())
        seeded = await declaring(self._database, lambda conn: self._seed(conn, server, words, only_new=only_new))
        self._announced, self._prune_at = server, self._next_pruning()
        self._emit(
            ManifestsSeeded(
                created=seeded.created,
                changed=seeded.changed,
                unchanged=seeded.unchanged,
                pruned=len(seeded.pruned),
            )
        )
        self._tell_of(seeded.pruned)
        return seeded

    async def prune(self) -> tuple[str, ...]:
        """Delete what no live server of the app declares any more, and groups that nobody uses."""
        pruned = await declaring(self._database, self._prune)
        self._prune_at = self._next_pruning()
        self._tell_of(pruned)
        return pruned

    async def tick(self) -> timedelta:
        """A server that was marked lost seeds again: others may have pruned what it alone declares.

        What it finds is left alone, because newer code may have written it since this server started.
        """
        if self._server() not in (None, self._announced):
            await self.seed(only_new=self._announced is not None)
        elif self._may_prune and self._clock.monotonic() >= self._prune_at:
            await self.prune()
        return min(self._interval, LOOK_AT_ONESELF)

    @property
    def _may_prune(self) -> bool:
        return self._prunes and self._app is not None and self._announced is not None

    def _next_pruning(self) -> float:
        return self._clock.monotonic() + self._interval.total_seconds()

    async def _seed(self, conn: Connection, server: UUID | None, words: list[Worded], *, only_new: bool) -> Seeded:
        now = await self._rows.now(conn, self._clock.injected())
        groups = await self._prepare_groups(conn, only_new=only_new)
        trains = [_train_row(train, groups) for train in self._declarations.trains]
        await self._trains.announce(conn, trains, app=self._app, only_new=only_new)
        writer = Writer(
            self._rows, app=self._app, origin=Origin.DECLARED, groups=groups.ids, now=now, only_new=only_new
        )
        written = await writer.write(conn, words)
        switched = await groups.apply(conn, self._groups)
        pruned = await self._announce_and_prune(conn, server)
        await self._wake(conn, written, switched=switched)
        return Seeded(written.created, written.changed, written.unchanged, pruned)

    async def _prepare_groups(self, conn: Connection, *, only_new: bool) -> GroupChanges:
        used = {manifest.group for manifest in self._declarations.manifests.values()}
        used |= {train.options.group for train in self._declarations.trains if train.options.group is not None}
        declared = self._declarations.groups
        return await prepare_groups(conn, self._groups, app=self._app, declared=declared, used=used, only_new=only_new)

    async def _announce_and_prune(self, conn: Connection, server: UUID | None) -> tuple[str, ...]:
        if self._app is None or server is None:
            return ()
        await self._rows.announce(conn, server, self._app, self._declarations.manifests.keys())
        return await self._prune(conn) if self._prunes else ()

    async def _prune(self, conn: Connection) -> tuple[str, ...]:
        pruned = () if self._app is None else tuple(await self._rows.prune(conn, self._app))
        await self._trains.forget(conn, older_than=TRAINS_ARE_FORGOTTEN_AFTER)
        await self._groups.forget(conn)
        return pruned

    async def _wake(self, conn: Connection, written: Written, *, switched: bool) -> None:
        topics = ["manifest"] * written.planned + ["work"] * switched
        if topics:
            await notify_in(conn, self._database, topics)

    def _tell_of(self, pruned: tuple[str, ...]) -> None:
        for external_id in pruned:
            self._emit(ManifestPruned(external_id=external_id))


def _train_row(train: AnyTrain, groups: GroupChanges) -> Columns:
    options, retry = train.options, train.options.retry
    return {
        "name": train.name,
        "aliases": train.options.aliases,
        "group_id": None if train.options.group is None else groups.ids[train.options.group],
        "input_schema": train.signature.json_schema,
        "retention": interval(train.options.retention),
        "priority": options.priority,
        "max_attempts": options.max_attempts,
        "retry_delay": None if retry is None else interval(retry.delay),
        "max_retry_delay": None if retry is None else interval(retry.max_delay),
        "retry_backoff": None if retry is None else retry.factor,
        "timeout": interval(options.timeout),
    }


class SeedingComponent(LoopComponent):
    """Seeds before anything that is started later runs, and goes on pruning."""

    def __init__(self, seeding: Seeding, *, emit: Emit) -> None:
        super().__init__(Loop(seeding.name, seeding.tick, emit=emit, first_delay=LOOK_AT_ONESELF))
        self._seeding = seeding

    async def start(self) -> None:
        await self._seeding.seed()
