"""The first three junctions in a row: from what waits to what goes now."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from interlock import failpoints
from interlock.dispatch.apply_capacity_limits import apply_capacity_limits
from interlock.dispatch.load_dispatch_capacity import load_dispatch_capacity
from interlock.dispatch.load_queued_jobs import load_queued_jobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.dispatch.apply_capacity_limits import Verdict
    from interlock.dispatch.room import Room
    from interlock.dispatch.settings import DispatchSettings
    from interlock.model.work import Lane
    from interlock.store.connection import Connection
    from interlock.store.dispatching import Dispatching


class Selection(NamedTuple):
    """Who goes and who does not, how many were lost to other dispatchers, and whether another one held a lock."""

    verdict: Verdict
    lost: int
    contended: bool


async def select(
    conn: Connection, dispatching: Dispatching, lanes: Sequence[Lane], settings: DispatchSettings, room: Room
) -> Selection:
    capacity = await load_dispatch_capacity(
        conn,
        dispatching,
        lanes,
        cap=settings.max_active_jobs,
        excluded=settings.exclude_from_max_active_jobs,
        room=room,
    )
    await failpoints.reach("dispatch.counted")
    candidates, lost = await load_queued_jobs(conn, dispatching, capacity, room)
    await failpoints.reach("dispatch.loaded")
    return Selection(apply_capacity_limits(candidates, capacity, room), lost, capacity.contended)
