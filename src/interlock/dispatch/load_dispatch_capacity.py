"""Junction 1: how much may be dispatched.

Caps are exact because locking and counting are two statements: the count has a snapshot that is younger than the lock,
so it sees whatever the previous holder dispatched. Where nothing is capped, nothing is locked. Nobody waits for a lock:
what another dispatcher counts right now is left to it. Of very many capped groups only those are locked that come first
and seem to have room.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from interlock import failpoints

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from interlock.dispatch.room import Room
    from interlock.model.work import Candidate, Lane
    from interlock.store.connection import Connection
    from interlock.store.dispatching import Active, Dispatching

LOCKS_AT_ONCE = 100
"""So many capped groups are locked whether they have room or not. All locks of a server share one table, which has room
for some thousand: a group per customer would fill it, and then nobody could dispatch.
"""


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

    def without(self, chosen: Sequence[Candidate]) -> Capacity:
        """What is left once these go; the locks under which it was counted are held until then."""
        by_group = Counter(candidate.group_id for candidate in chosen)
        return replace(
            self,
            free=None if self.free is None else self.free - sum(each.train not in self.excluded for each in chosen),
            free_by_group={group: free - by_group[group] for group, free in self.free_by_group.items()},
        )


async def load_dispatch_capacity(
    conn: Connection,
    dispatching: Dispatching,
    lanes: Sequence[Lane],
    *,
    cap: int | None,
    excluded: Collection[str],
    room: Room,
) -> Capacity:
    outside = frozenset(excluded)
    if len({lane.group_id for lane in lanes if lane.cap is not None}) > LOCKS_AT_ONCE:
        active = await dispatching.count_active(conn, excluded=outside)
        lanes = _worth_a_lock(lanes, active, cap=cap, excluded=outside, room=room)
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


def _worth_a_lock(
    lanes: Sequence[Lane], active: Mapping[int, Active], *, cap: int | None, excluded: Collection[str], room: Room
) -> list[Lane]:
    """The lanes without a cap, and of the others the first that seem to have room; whether they have, the count under
    the lock says.
    """
    is_full = cap is not None and sum(each.counted for each in active.values()) >= cap
    kept, groups = [], set[int]()
    for lane in lanes:
        if lane.cap is None:
            kept.append(lane)
        elif (
            room.most(lane.train) > 0
            and lane.cap > _active(active, lane.group_id)
            and (not is_full or lane.train in excluded)
            and (lane.group_id in groups or len(groups) < max(LOCKS_AT_ONCE, room.total))
        ):
            groups.add(lane.group_id)
            kept.append(lane)
    return kept


def _is_usable(lane: Lane, locked: Collection[int | None], excluded: Collection[str], *, counts_all: bool) -> bool:
    if lane.cap is not None and lane.group_id not in locked:
        return False
    return not counts_all or lane.train in excluded or None in locked


def _active(active: Mapping[int, Active], group: int) -> int:
    return active[group].active if group in active else 0
