"""Junction 3: who of the candidates goes, and why each of the others does not. Pure.

A full group is skipped and the rest goes on; a full whole stops everything, except trains that are excluded from the
global cap. Those count in their group all the same.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.dispatch.load_dispatch_capacity import Capacity
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


def apply_capacity_limits(candidates: Sequence[Candidate], capacity: Capacity, *, room: int) -> Verdict:
    """Walk the candidates in order; `room` is how many this server may dispatch, whatever the caps."""
    verdict, free, by_group, stopped = Verdict([], []), capacity.free, dict(capacity.free_by_group), False
    for candidate in candidates:
        counts = free is not None and candidate.train not in capacity.excluded
        if stopped and counts:
            continue
        if len(verdict.chosen) >= room:
            verdict.skipped.append(Skipped(candidate, Held.NO_WORKER))
            break
        if counts and free is not None and free <= 0:
            verdict.skipped.append(Skipped(candidate, Held.GLOBAL_CAP))
            stopped = True
        elif by_group.get(candidate.group_id, 1) <= 0:
            verdict.skipped.append(Skipped(candidate, Held.GROUP_CAP))
        else:
            verdict.chosen.append(candidate)
            free = free - 1 if counts and free is not None else free
            if candidate.group_id in by_group:
                by_group[candidate.group_id] -= 1
    return verdict
