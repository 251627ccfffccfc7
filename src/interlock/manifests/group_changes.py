"""What code says differently of groups than it last did, in two parts around the writing of manifests.

Rows are locked in one order by everybody: entries of the work queue, manifests, groups. So the priority of what is
queued is copied first, and the group itself is changed last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from interlock.model.manifest import GROUP_DEFAULTS, differing

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from interlock.model.manifest import GroupDeclaration
    from interlock.store.connection import Connection
    from interlock.store.declaration_row import Columns
    from interlock.store.manifest_group import GroupRow, ManifestGroups

NAMELESS = ""


@dataclass(frozen=True, slots=True)
class GroupChanges:
    ids: Mapping[str, int]
    changes: list[Columns]

    async def apply(self, conn: Connection, groups: ManifestGroups) -> bool:
        """Answers whether a switch was changed."""
        if self.changes:
            await groups.change(conn, self.changes)
        return any(change["columns"] for change in self.changes)


async def prepare_groups(
    conn: Connection,
    groups: ManifestGroups,
    *,
    app: str | None,
    declared: Mapping[str, GroupDeclaration],
    used: Collection[str],
    only_new: bool = False,
) -> GroupChanges:
    """See to it that all groups exist, and give what is queued the priorities that they are about to have.

    With `only_new` nothing is said of groups of which the app said something before.
    """
    rows = await groups.ensure(conn, declared.keys() | set(used))
    speaker = app or NAMELESS
    spoken = [row for row in rows.values() if not (only_new and (speaker in row.said or row.name not in declared))]
    changes = [change for row in spoken if (change := _change(row, declared.get(row.name), app)) is not None]
    priorities = {change["id"]: change["columns"]["priority"] for change in changes if "priority" in change["columns"]}
    if priorities:
        await groups.copy_priority(conn, priorities)
    return GroupChanges({name: row.id for name, row in rows.items()}, changes)


def _change(row: GroupRow, declaration: GroupDeclaration | None, app: str | None) -> Columns | None:
    speaker = app or NAMELESS
    if declaration is None:
        return _withdrawal(row, app)
    said, before = declaration.said(), row.said.get(speaker)
    if said == before:
        return None
    columns = {name: said.get(name, GROUP_DEFAULTS[name]) for name in differing(said, before or {})}
    return {"id": row.id, "columns": columns, "declared": {**row.said, speaker: said}}


def _withdrawal(row: GroupRow, app: str | None) -> Columns | None:
    """An app that no longer speaks of a group leaves its switches as they are; several apps may be nameless."""
    if app is None or app not in row.said:
        return None
    return {"id": row.id, "columns": {}, "declared": {name: said for name, said in row.said.items() if name != app}}
