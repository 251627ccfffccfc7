"""Junction 1: how much may be dispatched.

Caps are exact because locking and counting are two statements: the count has a snapshot that is younger than the lock,
so it sees whatever the previous holder dispatched. Where nothing is capped, nothing is locked. Nobody waits for a lock:
what another dispatcher counts right now is left to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from interlock import failpoints

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from interlock.model.work import Lane
    from interlock.store.connection import Connection
    from interlock.store.dispatching import Active, Dispatching


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What is free: in all (None: no cap), and by capped group; and the lanes that may be taken from."""

    lanes: Sequence[Lane]
    free: int | None = None
    free_by_group: Mapping[int, int] = field(default_factory=dict)
    excluded: frozenset[str] = frozenset()
    contended: bool = False

    def takes(self, lane: Lane, most: int) -> int:
        """How many entries of a lane are worth a look: what is free and one more, which tells what it waits for."""
        free = [self.free_by_group.get(lane.group_id, most)]
        if self.free is not None and lane.train not in self.excluded:
            free.append(self.free)
        return min(most, max(min(free), 0) + 1)

    def is_capped(self, lane: Lane) -> bool:
        return lane.group_id in self.free_by_group or (self.free is not None and lane.train not in self.excluded)


async def load_dispatch_capacity(
    conn: Connection, dispatching: Dispatching, lanes: Sequence[Lane], *, cap: int | None, excluded: Collection[str]
) -> Capacity:
    outside = frozenset(excluded)
    group_caps = {lane.group_id: lane.cap for lane in lanes if lane.cap is not None}
    counts_all = cap is not None and any(lane.train not in outside for lane in lanes)
    if not counts_all and not group_caps:
        return Capacity(lanes=lanes, excluded=outside)
    locked = await dispatching.lock_if_free(conn, all_groups=counts_all, group_ids=group_caps)
    await failpoints.reach("dispatch.locked")
    active = await dispatching.count_active(conn, excluded=outside)
    usable = [lane for lane in lanes if _is_usable(lane, locked, outside, counts_all=counts_all)]
    return Capacity(
        lanes=usable,
        free=None if cap is None else cap - sum(each.counted for each in active.values()),
        free_by_group={group: most - _active(active, group) for group, most in group_caps.items() if group in locked},
        excluded=outside,
        contended=len(usable) < len(lanes),
    )


def _is_usable(lane: Lane, locked: Collection[int | None], excluded: Collection[str], *, counts_all: bool) -> bool:
    if lane.cap is not None and lane.group_id not in locked:
        return False
    return not counts_all or lane.train in excluded or None in locked


def _active(active: Mapping[int, Active], group: int) -> int:
    return active[group].active if group in active else 0
