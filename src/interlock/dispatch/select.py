"""The first three junctions in a row: from what waits to what goes now.

What is skipped must not use up the room of what comes behind it: where a batch was full and not all of it goes, the
next is looked at under the same locks, with the capacity that is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from interlock import failpoints
from interlock.dispatch.apply_capacity_limits import Verdict, apply_capacity_limits
from interlock.dispatch.load_dispatch_capacity import load_dispatch_capacity
from interlock.dispatch.load_queued_jobs import load_queued_jobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.dispatch.apply_capacity_limits import Skipped
    from interlock.dispatch.room import Room
    from interlock.dispatch.settings import DispatchSettings
    from interlock.model.work import Candidate, Lane
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
    chosen: list[Candidate] = []
    skipped: dict[int, Skipped] = {}
    lost = 0
    while True:
        loaded = await load_queued_jobs(conn, dispatching, capacity, room, chosen=chosen)
        await failpoints.reach("dispatch.loaded")
        verdict = apply_capacity_limits(loaded.candidates, capacity, room)
        chosen, lost = chosen + verdict.chosen, lost + loaded.lost
        skipped |= {each.candidate.id: each for each in verdict.skipped}
        if not loaded.cut or not verdict.chosen:
            return Selection(Verdict(chosen, list(skipped.values())), lost, capacity.contended)
        capacity = capacity.without(verdict.chosen)
