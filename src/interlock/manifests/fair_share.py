"""Who gets the places of a cycle when more is due than it may queue: every group its share, so that none starves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.model.due import DueManifest, PlannedFire

Groups = dict[int, list["PlannedFire"]]


def choose_fairly(fires: Sequence[PlannedFire], limit: int | None) -> tuple[list[PlannedFire], list[PlannedFire]]:
    """Those that are queued in this cycle, and those that wait for the next, which follows at once.

    Each group gets the same number of places; what a group leaves over goes to groups of higher priority first. With
    more groups than places, those that waited longest get one each.
    """
    if limit is None or len(fires) <= limit:
        return list(fires), []
    groups = _by_group(fires)
    allotted = _allot({group: len(members) for group, members in groups.items()}, groups, limit)
    chosen = [fire for group, members in groups.items() for fire in members[: allotted[group]]]
    deferred = [fire for group, members in groups.items() for fire in members[allotted[group] :]]
    return chosen, deferred


def _by_group(fires: Sequence[PlannedFire]) -> Groups:
    """In the order of the rotation: who was queued longest ago comes first, who never was before all."""
    groups: Groups = {}
    for fire in sorted(fires, key=lambda fire: _waited(fire.manifest)):
        groups.setdefault(fire.manifest.group_id, []).append(fire)
    return groups


def _waited(manifest: DueManifest) -> tuple[float, int, int]:
    last = manifest.group_last_queued_at
    return (0.0 if last is None else last.timestamp(), -manifest.group_priority, manifest.group_id)


def _allot(wanted: dict[int, int], groups: Groups, limit: int) -> dict[int, int]:
    share = limit // len(groups)
    allotted = {group: min(share, count) for group, count in wanted.items()}
    left = limit - sum(allotted.values())
    if share:
        order = sorted(groups, key=lambda group: -groups[group][0].manifest.group_priority)
    else:
        order = list(groups)[:limit]
    for group in order:
        extra = min(left, wanted[group] - allotted[group], left if share else 1)
        allotted[group] += extra
        left -= extra
    return allotted
