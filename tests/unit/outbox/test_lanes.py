"""Lanes change hands one by one, and only once nothing of them is in hand."""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock.outbox import lanes as module
from interlock.outbox.lane_set import LaneSet
from interlock.outbox.lanes import Lanes
from interlock.outbox.memory import MemoryMessages

SHARED = LaneSet("outbox:test", 4)


class Lease:
    """A lane that is held until it is released."""

    def __init__(self, slot: int, held: set[int]) -> None:
        self.slot, self.lost, self._held = slot, False, held

    async def arelease(self) -> None:
        self._held.discard(self.slot)


class Locks:
    def __init__(self) -> None:
        self.held: set[int] = set()
        self.others: list = []

    async def atry_hold(self, _name, slots, **_options):
        free = next((slot for slot in range(slots) if slot not in self.held), None)
        if free is None:
            return None
        self.held.add(free)
        return Lease(free, self.held)

    async def aholders(self, _name):
        return self.others


class Store(MemoryMessages):
    workers = (SHARED,)

    async def tags(self):
        return [(each.tag,) for each in self.workers]


@pytest.fixture
def world(monkeypatch):
    """Lanes that look at every call."""
    monkeypatch.setattr(module, "LOOK_INTERVAL", 0.0)
    store, locks = Store(), Locks()
    return store, locks, Lanes(store, locks, SHARED, ttl=timedelta(seconds=30), emit=lambda _: None)


async def test_a_lane_is_handed_over_only_when_all_that_was_claimed_of_it_is_settled(world):
    store, locks, lanes = world
    await lanes.look()
    assert locks.held == {0, 1, 2, 3}
    lease = lanes.enter(bucket=1023, key="k")
    store.workers = (SHARED, SHARED)
    await lanes.look()
    await lanes.look()
    assert locks.held == {0, 1, 3}
    assert 1023 not in lanes.buckets()
    lanes.leave(lease, "k")
    await lanes.look()
    assert locks.held == {0, 1}


async def test_who_counts_more_lanes_than_another_stands_by(world):
    store, locks, lanes = world
    await lanes.look()
    store.workers = (SHARED, LaneSet("outbox:test", 2))
    await lanes.look()
    await lanes.look()
    assert locks.held == set()
    assert lanes.buckets() == []


async def test_those_who_stand_by_or_deliver_other_things_take_no_share(world):
    store, locks, lanes = world
    store.workers = (SHARED, LaneSet("outbox:test", 8), LaneSet("outbox:other", 4))
    await lanes.look()
    assert locks.held == {0, 1, 2, 3}
    assert lanes.buckets() == list(range(1024))
