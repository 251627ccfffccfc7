"""Junction 2: the entries that come next, locked.

Each lane gives as many as its group has capacity for and one more, so the backlog of a full group is never in anybody's
way. The one more is what `apply_capacity_limits` names as skipped; it must not use up the limit, or many full groups
would fill it. A group of many lanes gives more than it has capacity for all the same, so whoever chooses looks again
behind a batch that is `cut`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.dispatch.load_dispatch_capacity import Capacity
    from interlock.dispatch.room import Room
    from interlock.model.work import Candidate
    from interlock.store.connection import Connection
    from interlock.store.dispatching import Dispatching

OVERLAP = 2
"""So many times the limit each lane is looked into, because other dispatchers may hold the first of its entries."""


class Loaded(NamedTuple):
    """The candidates in order, how many were lost to other dispatchers, and whether there may be more behind these."""

    candidates: Sequence[Candidate]
    lost: int
    cut: bool


async def load_queued_jobs(
    conn: Connection, dispatching: Dispatching, capacity: Capacity, room: Room, *, chosen: Sequence[Candidate] = ()
) -> Loaded:
    """What comes next, behind what was chosen already."""
    takes = {
        lane: capacity.takes(lane, OVERLAP * most) for lane in capacity.lanes if (most := room.most(lane.train)) > 0
    }
    if not takes:
        return Loaded((), 0, cut=False)
    limit = room.total + sum(capacity.is_capped(lane) for lane in takes)
    candidates, lost = await dispatching.lock_candidates(conn, takes, limit=limit, chosen=chosen)
    return Loaded(candidates, lost, cut=len(candidates) == limit)
