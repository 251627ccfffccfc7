"""Junction 3: who of the candidates goes, and why each of the others does not. Pure.

A full group is skipped and the rest goes on; a full whole stops everything, except trains that are excluded from the
global cap. Those count in their group all the same.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from interlock.dispatch.load_dispatch_capacity import Capacity
    from interlock.dispatch.room import Room
    from interlock.model.work import Candidate


class Held(StrEnum):
    """Why a candidate stays in the queue."""

    GROUP_CAP = "group_cap"
    GLOBAL_CAP = "global_cap"
    NO_WORKER = "no_worker"


class Skipped(NamedTuple):
    candidate: Candidate
    reason: Held


class Verdict(NamedTuple):
    chosen: list[Candidate]
    skipped: list[Skipped]


def apply_capacity_limits(candidates: Sequence[Candidate], capacity: Capacity, room: Room) -> Verdict:
    """Walk the candidates in order; `room` is what this server may dispatch, whatever the caps."""
    verdict, free, by_group = Verdict([], []), capacity.free, dict(capacity.free_by_group)
    stopped = False
    for candidate in candidates:
        counts = free is not None and candidate.train not in capacity.excluded
        if stopped and counts:
            continue
        reason = _held(candidate, free if counts else None, by_group, room)
        if reason is None:
            verdict.chosen.append(candidate)
            room.take(candidate.train)
            free = free - 1 if free is not None and counts else free
            if candidate.group_id in by_group:
                by_group[candidate.group_id] -= 1
        else:
            verdict.skipped.append(Skipped(candidate, reason))
            stopped = stopped or reason is Held.GLOBAL_CAP
    return verdict


def _held(candidate: Candidate, free: int | None, by_group: Mapping[int, int], room: Room) -> Held | None:
    if free is not None and free <= 0:
        return Held.GLOBAL_CAP
    if by_group.get(candidate.group_id, 1) <= 0:
        return Held.GROUP_CAP
    return Held.NO_WORKER if room.most(candidate.train) <= 0 else None
