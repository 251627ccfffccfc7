"""Lanes: the keys of ordered delivery, shared among the live workers through lock slots.

Lane n of N owns a range of the buckets that keys fall into, and one worker at a time holds it. Each worker takes its
fair share; who has more gives lanes up, but only once what it claimed of them is settled. Workers that count a
different number of lanes would cut the buckets differently: while any two disagree, those with the fewest lanes
deliver, and the others give all of theirs up and stand by.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.locks.deadline import clock
from interlock.model.message import BUCKETS
from interlock.observe.events.outbox import LanesChanged, LanesDisagree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from interlock.locks.lease import Lease
    from interlock.locks.locks import Locks
    from interlock.observe.bus import Emit
    from interlock.outbox.lane_set import LaneSet
    from interlock.outbox.store import MessageStore

LOOK_INTERVAL = 1.0
SHORTEST_BLOCK = 0.05
INSTANT = 0.001  # said of a key whose emitter has no room
HELD_KEY = 2.0  # seconds until a key that holds, or whose topic is closed, is looked at again
LOOKED_AT = 10_000  # keys a second that are surely looked at: the first of many must not be forgotten before the last
MOST_BLOCKED = 100_000
NARROW = 16
SHALLOW, DEEP = 8, 256  # messages of one bucket that a claim looks at: few while many keys have some


class Lanes:
    def __init__(self, store: MessageStore, locks: Locks, shared: LaneSet, *, ttl: timedelta, emit: Emit) -> None:
        self._store, self._locks, self._emit = store, locks, emit
        self._shared, self._name, self._lanes, self._ttl = shared, shared.name, shared.lanes, ttl
        self._leases: dict[int, Lease] = {}
        self._draining: set[int] = set()
        self._open: dict[int, int] = {}
        self._blocked: dict[str, float] = {}
        self._keys: Counter[str] = Counter()
        self.depth, self._width, self._reached = SHALLOW, BUCKETS, -1
        self.is_whole, self._may_hide = True, False
        self._agreed = False
        self._looked = -LOOK_INTERVAL
        self._told: tuple[int, int] | None = None
        self._disagreed: set[tuple[str, int]] = set()

    @property
    def held(self) -> int:
        return len(self._leases)

    async def look(self) -> None:
        """Take and give up lanes, at most once a second."""
        self._drop_lost()
        await self._hand_over()
        if clock() - self._looked < LOOK_INTERVAL:
            return
        self._looked = clock()
        await self._share()
        await self._agree()
        self._tell()

    @property
    def has_seen_all(self) -> bool:
        """Whether a look again at once would find no more."""
        return self.is_whole and not self._may_hide

    def buckets(self) -> list[int]:
        """Of the lanes that this worker may claim from now: some of them, the next ones each time."""
        held = self._claimable()
        if len(held) <= self._width:
            self.is_whole = True
            return held
        start = next((place for place, bucket in enumerate(held) if bucket > self._reached), 0)
        chosen = held[start : start + self._width]
        self.is_whole, self._reached = False, chosen[-1]
        return chosen

    def _claimable(self) -> list[int]:
        if not self._agreed:
            return []
        return sorted(
            bucket
            for lane, lease in self._leases.items()
            if lane not in self._draining and not lease.lost
            for bucket in range(*self._range(lane))
        )

    def enter(self, bucket: int, key: str) -> Lease:
        """A message of this key is in hand."""
        lane = bucket * self._lanes // BUCKETS
        self._open[lane] = self._open.get(lane, 0) + 1
        self._keys[key] += 1
        return self._leases[lane]

    def leave(self, lease: Lease, key: str) -> bool:
        """It is settled, or given back; True says that none of the key is in hand any more."""
        self._open[lease.slot] -= 1
        self._keys[key] -= 1
        if self._keys[key]:
            return False
        del self._keys[key]
        return True

    def sound(self, taken: int, limit: int) -> None:
        """Look at as many buckets, and as deep into each, as it takes to fill a batch, and at no more."""
        if taken >= limit:
            self.depth = max(self.depth // 2, SHALLOW)
            self._width = max(self._width // 2, NARROW)
        elif not self.is_whole:
            self._width = min(self._width * 2, BUCKETS)
        elif taken or len(self._blocked) > MOST_BLOCKED:
            self.depth = min(self.depth * 2, DEEP)

    def remember(self, blocked: Mapping[str, timedelta]) -> None:
        """Keys that cannot go on now are passed over until then; behind those that are new there may be others."""
        now, held = clock(), HELD_KEY + len(self._blocked) / LOOKED_AT
        seconds = {key: wait.total_seconds() for key, wait in blocked.items()}
        self._may_hide = any(key not in self._blocked and wait != INSTANT for key, wait in seconds.items())
        for key, wait in seconds.items():
            self._blocked[key] = now + (max(wait, SHORTEST_BLOCK) if wait else held)

    def block(self, key: str | None, delay: timedelta | None) -> None:
        if key is not None and delay:
            self._blocked[key] = clock() + delay.total_seconds()

    def blocked_keys(self) -> list[str]:
        """Those that cannot go on, and those of which something is in hand."""
        now = clock()
        if self._blocked:
            self._blocked = {key: until for key, until in self._blocked.items() if until > now}
        return [*self._keys, *list(self._blocked)[:MOST_BLOCKED]]

    def wait(self) -> timedelta:
        """How long until lanes or blocked keys want to be looked at."""
        until = min([self._looked + LOOK_INTERVAL, *self._blocked.values()])
        return timedelta(seconds=max(until - clock(), 0.005))

    async def close(self) -> None:
        """Give everything up."""
        leases, self._leases = self._leases, {}
        for lease in leases.values():
            await lease.arelease()

    def _range(self, lane: int) -> tuple[int, int]:
        """Rounded up, so that `bucket * lanes // BUCKETS` names the lane of each bucket."""
        return -(-lane * BUCKETS // self._lanes), -(-(lane + 1) * BUCKETS // self._lanes)

    def _drop_lost(self) -> None:
        for lane in [lane for lane, lease in self._leases.items() if lease.lost]:
            del self._leases[lane]
            self._draining.discard(lane)

    async def _hand_over(self) -> None:
        for lane in [lane for lane in self._draining if not self._open.get(lane)]:
            self._draining.discard(lane)
            await self._leases.pop(lane).arelease()

    async def _share(self) -> None:
        wanted = await self._fair_share()
        staying = [lane for lane in self._leases if lane not in self._draining]
        for lane in staying[wanted:]:
            self._draining.add(lane)
        for _ in range(wanted - len(staying)):
            lease = await self._locks.atry_hold(self._name, self._lanes, ttl=self._ttl, on_lost="mark")
            if lease is None:
                return
            self._leases[lease.slot] = lease

    async def _fair_share(self) -> int:
        """Those who stand by take none, so they do not count among those who share."""
        counts = self._shared.counts(await self._store.tags())
        if any(count < self._lanes for count in counts):
            return 0
        return -(-self._lanes // max(counts.count(self._lanes), 1))

    async def _agree(self) -> None:
        """Looked at only after the own lanes are taken: of two that come at once, one sees the other at least."""
        holders = await self._locks.aholders(self._name)
        others = {(each.owner, each.slots) for each in holders if each.slots != self._lanes}
        self._agreed = not others
        for owner, slots in others - self._disagreed:
            self._emit(LanesDisagree(lanes=self._lanes, other=owner, theirs=slots))
        self._disagreed = others
        if any(slots < self._lanes for _, slots in others):
            self._draining.update(self._leases)
            await self._hand_over()

    def _tell(self) -> None:
        standing = len(self._leases), len(self._draining)
        if standing != self._told:
            self._told = standing
            self._emit(LanesChanged(held=standing[0], lanes=self._lanes, draining=standing[1]))
