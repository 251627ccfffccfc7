"""What a deploy of this code would change, and which switches of operators it would leave alone.

Only what code says differently than it last did is written; so the comparison is with what code last said, and what an
operator changed since then is named as kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from interlock.manifests.group_changes import NAMELESS
from interlock.model.manifest import GROUP_DEFAULTS, differing
from interlock.store.manifest_group import ManifestGroups
from interlock.store.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from interlock.manifests.declare import Declarations
    from interlock.model.manifest import Said
    from interlock.model.reading import DeclaredLine
    from interlock.store.database import Database
    from interlock.store.manifest_group import GroupRow

What = Literal["create", "change", "keep", "prune", "refuse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One manifest or group: `fields` are what changes, `kept` what operators set differently than code says."""

    kind: Literal["manifest", "group"]
    name: str
    what: What
    fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    kept: dict[str, dict[str, Any]] = field(default_factory=dict)
    reason: str | None = None


async def differences(database: Database, declarations: Declarations, app: str | None) -> list[Difference]:
    """What seeding this code would do, groups first; what stays as it is, is left out."""
    async with database.connection() as conn:
        groups = await ManifestGroups(database.sql).list(conn)
        stored = await Reading(database.sql).declared(conn, list(declarations.manifests), app)
    return [*_of_groups(declarations, groups, app), *_of_manifests(declarations, stored, app)]


def _of_groups(declarations: Declarations, rows: Mapping[str, GroupRow], app: str | None) -> Iterator[Difference]:
    for name, declaration in sorted(declarations.groups.items()):
        said, row = declaration.said(), rows.get(name)
        if row is None:
            yield Difference(kind="group", name=name, what="create", fields=_all(said))
            continue
        before = row.said.get(app or NAMELESS, {})
        changed = {
            one: {"before": getattr(row, one), "after": said.get(one, GROUP_DEFAULTS[one])}
            for one in sorted(differing(said, before))
        }
        kept = {
            one: {"code": value, "stored": getattr(row, one)}
            for one, value in said.items()
            if one not in changed and getattr(row, one) != value
        }
        yield from _difference("group", name, changed, kept)


def _of_manifests(
    declarations: Declarations, stored: Mapping[str, DeclaredLine], app: str | None
) -> Iterator[Difference]:
    for name, declaration in sorted(declarations.manifests.items()):
        said, row = declaration.said(), stored.get(name)
        if row is None:
            yield Difference(kind="manifest", name=name, what="create", fields=_all(said))
        elif row.app is not None and row.app != app:
            reason = f"it belongs to the app {row.app!r}"
            yield Difference(kind="manifest", name=name, what="refuse", reason=reason)
        else:
            yield from _of_manifest(name, said, row)
    if app is not None:
        for name in sorted(stored.keys() - declarations.manifests.keys()):
            reason = "once no live server declares it any more"
            yield Difference(kind="manifest", name=name, what="prune", reason=reason)


def _of_manifest(name: str, said: Said, row: DeclaredLine) -> Iterator[Difference]:
    changed = {
        one: {"before": row.declared.get(one), "after": said.get(one)} for one in sorted(differing(said, row.declared))
    }
    kept = {}
    if "enabled" not in changed and row.declared.get("enabled", True) != row.enabled:
        kept = {"enabled": {"code": said["enabled"], "stored": row.enabled}}
    yield from _difference("manifest", name, changed, kept)


def _difference(
    kind: Literal["manifest", "group"], name: str, changed: dict[str, dict[str, Any]], kept: dict[str, dict[str, Any]]
) -> Iterator[Difference]:
    if changed or kept:
        yield Difference(kind=kind, name=name, what="change" if changed else "keep", fields=changed, kept=kept)


def _all(said: Said) -> dict[str, dict[str, Any]]:
    return {name: {"before": None, "after": value} for name, value in said.items()}
