"""Declared manifests written to their rows: new ones inserted, changed ones changed, all others left alone."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interlock.errors import OwnedByAnotherApp, UnknownManifest
from interlock.failpoints import reach
from interlock.manifests.graph import parents_first
from interlock.model.manifest import REPLANNING, differing
from interlock.model.plan import Plan, first_plan, replan
from interlock.model.schedule import Dependent, Once, single_time
from interlock.model.schedule_json import decode_schedule
from interlock.store.declaration_row import columns_of, parts, plan_columns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from interlock.model.manifest import ManifestDeclaration, Origin, Said
    from interlock.model.schedule import Schedule
    from interlock.store.connection import Connection
    from interlock.store.declaration import DeclaredManifests, HeldManifest, StoredManifest
    from interlock.store.declaration_row import Columns


@dataclass(frozen=True, slots=True)
class Worded:
    """A declaration and all that it says."""

    declaration: ManifestDeclaration
    said: Said


def worded(declarations: Iterable[ManifestDeclaration]) -> list[Worded]:
    """The declarations, parents first, each put into words: done before the transaction, which must not stand still."""
    return [Worded(declaration, declaration.said()) for declaration in parents_first(declarations)]


@dataclass(frozen=True, slots=True)
class Edit:
    """A manifest of which code says something else than it last said."""

    id: int
    declaration: ManifestDeclaration
    said: Said
    changed: frozenset[str]


@dataclass(slots=True)
class Written:
    """What became of the declarations."""

    created: int = 0
    changed: int = 0
    unchanged: int = 0
    planned: bool = False
    """Whether the manager has something new to look at."""


class Writer:
    """Writes declarations of one app, at one time, in a transaction that holds the lock of all declarations."""

    def __init__(
        self,
        rows: DeclaredManifests,
        *,
        app: str | None,
        origin: Origin,
        groups: Mapping[str, int],
        now: datetime,
        only_new: bool = False,
    ) -> None:
        self._rows, self._app, self._origin, self._groups, self._now = rows, app, origin, groups, now
        self._only_new = only_new
        self._ids: dict[str, int] = {}

    async def write(self, conn: Connection, words: Sequence[Worded]) -> Written:
        new, edits = await self._compare(conn, words)
        await reach("manifests.write.compared")
        drawn = await self._rows.new_ids(conn, len(new)) if new else []
        self._ids |= {one.declaration.external_id: drawn_id for one, drawn_id in zip(new, drawn, strict=True)}
        await self._find_other_parents(conn, words)
        held = await self._rows.hold(conn, {edit.id for edit in edits} | self._new_parents(new, edits))
        planned = await self._insert(conn, new) | await self._change(conn, edits, held)
        return Written(len(new), len(edits), len(words) - len(new) - len(edits), planned)

    async def _compare(self, conn: Connection, words: Sequence[Worded]) -> tuple[list[Worded], list[Edit]]:
        """Those that do not exist yet, and those of which something else is said now."""
        new: list[Worded] = []
        edits: list[Edit] = []
        for part in parts(words):
            found = await self._rows.find(conn, [one.declaration.external_id for one in part])
            self._ids |= {name: row.id for name, row in found.items()}
            for one in part:
                row = found.get(one.declaration.external_id)
                if row is None:
                    new.append(one)
                elif not self._only_new:
                    edits.extend(self._edit(row, one))
        return new, edits

    def _edit(self, row: StoredManifest, one: Worded) -> Iterator[Edit]:
        # A row of a nameless app is anybody's: an app that gets its name later keeps its manifests.
        if row.app is not None and row.app != self._app:
            raise OwnedByAnotherApp(external_id=row.external_id, owner=row.app)
        changed = differing(one.said, row.said)
        if changed or row.origin != self._origin or row.app != self._app:
            yield Edit(row.id, one.declaration, one.said, changed)

    async def _find_other_parents(self, conn: Connection, words: Sequence[Worded]) -> None:
        """Parents that are not among what is written: they exist already, or nothing is written."""
        parents = {one.declaration.parent for one in words if one.declaration.parent is not None} - self._ids.keys()
        if not parents:
            return
        found = await self._rows.find(conn, parents)
        for parent in sorted(parents - found.keys()):
            raise UnknownManifest(name=parent)
        self._ids |= {name: row.id for name, row in found.items()}

    def _new_parents(self, new: Iterable[Worded], edits: Iterable[Edit]) -> set[int]:
        """Held as well: a success that is not committed yet knows nothing of a dependent that is to wait for it."""
        moved = (edit.declaration for edit in edits if "schedule" in edit.changed)
        schedules = (declaration.schedule for declaration in (*(one.declaration for one in new), *moved))
        return {self._ids[schedule.parent] for schedule in schedules if isinstance(schedule, Dependent)}

    async def _insert(self, conn: Connection, new: list[Worded]) -> bool:
        if not new:
            return False
        await self._rows.insert(conn, map(self._new_row, new), app=self._app, origin=self._origin)
        dependents = [
            self._ids[one.declaration.external_id] for one in new if isinstance(one.declaration.schedule, Dependent)
        ]
        woken = await self._rows.wake_dependents(conn, dependents, now=self._now) if dependents else []
        if woken:
            await self._rows.mark(conn, woken)
        return True

    def _new_row(self, one: Worded) -> Columns:
        declaration, said = one.declaration, one.said
        schedule = self._resolved(declaration.schedule)
        plan = first_plan(schedule, now=self._now, **_rules(declaration))
        return {
            "id": self._ids[declaration.external_id],
            "external_id": declaration.external_id,
            "declared": said,
            **self._columns(declaration, said.keys(), schedule),
            **plan_columns(plan),
        }

    async def _change(self, conn: Connection, edits: list[Edit], held: Mapping[int, HeldManifest]) -> bool:
        if not edits:
            return False
        changes = (self._changed_row(edit, held[edit.id]) for edit in edits)
        await self._rows.change(conn, changes, app=self._app, origin=self._origin)
        moved = [edit.id for edit in edits if "schedule" in edit.changed]
        if moved:
            await self._rows.wake_dependents(conn, moved, now=self._now)
        return await self._rows.mark(conn, [edit.id for edit in edits])

    def _changed_row(self, edit: Edit, held: HeldManifest) -> Columns:
        before = decode_schedule(held.schedule)
        schedule = self._resolved(edit.declaration.schedule) if "schedule" in edit.changed else before
        columns = self._columns(edit.declaration, edit.changed, schedule)
        if edit.changed & REPLANNING:
            columns |= plan_columns(self._replanned(edit, held.plan, before, schedule))
        return {"id": edit.id, "declared": edit.said, "columns": columns}

    def _replanned(self, edit: Edit, plan: Plan | None, before: Schedule, schedule: Schedule) -> Plan | None:
        if isinstance(schedule, Dependent):
            # Planned by a success of its parent; with another parent, that is no longer its reason to run. A plan that
            # lies ahead waits for the end of an exclusion: the manager looks at once which those are now.
            return None if plan is None or "schedule" in edit.changed else Plan(min(plan.nominal, self._now))
        return replan(schedule, plan, previous=before, now=self._now, **_rules(edit.declaration))

    def _columns(self, declaration: ManifestDeclaration, statements: Collection[str], schedule: Schedule) -> Columns:
        parent_id = None if declaration.parent is None else self._ids[declaration.parent]
        return columns_of(declaration, statements, schedule=schedule, groups=self._groups, parent_id=parent_id)

    def _resolved(self, schedule: Schedule) -> Schedule:
        """A delay is counted from the first time it is stored, not from every start of a server."""
        if isinstance(schedule, Once):
            return Once(single_time(schedule, self._now), None)
        return schedule


def _rules(declaration: ManifestDeclaration) -> dict[str, Any]:
    return {
        "exclusions": declaration.exclusions,
        "tz": declaration.time_zone,
        "variance": declaration.variance,
        "random": random.random,
    }
