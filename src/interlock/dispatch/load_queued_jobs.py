"""Junction 2: the entries that come next, locked.

Each lane gives as many as its group has capacity for and one more, so the backlog of a full group is never in anybody's
way. The one more is what `apply_capacity_limits` names as skipped; it must not use up the limit, or many full groups
would fill it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlock.dispatch.load_dispatch_capacity import Capacity
    from interlock.dispatch.room import Room
    from interlock.model.work import Candidate
    from interlock.store.connection import Connection
    from interlock.store.dispatching import Dispatching

OVERLAP = 2
"""So many times the limit each lane is looked into, because other dispatchers may hold the first of its entries."""


async def load_queued_jobs(
    conn: Connection, dispatching: Dispatching, capacity: Capacity, room: Room
) -> tuple[list[Candidate], int]:
    """The candidates in order, and how many were lost to other dispatchers."""
    takes = {
        lane: capacity.takes(lane, OVERLAP * most) for lane in capacity.lanes if (most := room.most(lane.train)) > 0
    }
    if not takes:
        return [], 0
    one_more = sum(capacity.is_capped(lane) for lane in takes)
    return await dispatching.lock_candidates(conn, takes, limit=room.total + one_more)
