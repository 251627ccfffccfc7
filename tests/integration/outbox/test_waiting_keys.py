"""Keys that cannot go on hide no others: a topic that is closed for an hour leaves tens of thousands of them."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from interlock.outbox import lanes as module
from interlock.outbox.drain import Drain
from interlock.outbox.emitter import EmitterOptions, Emitters
from interlock.outbox.lane_set import LaneSet
from interlock.outbox.lanes import Lanes
from interlock.outbox.settings import OutboxSettings
from tests.integration.outbox.places import PostgresPlace, lanes
from tests.unit.outbox.test_lanes import Locks

SHARED = LaneSet("outbox:test", 1)
WAITING = """
INSERT INTO interlock.outbox (topic, payload, key, bucket)
SELECT 'parked', '{}', 'k' || n, n % 4 FROM generate_series(1, $1::integer) n
"""
OTHERS = """
INSERT INTO interlock.outbox (topic, payload, key, bucket)
SELECT 'open', '{}', 'other' || n, n % 4 FROM generate_series(1, 20) n
"""
SUSPECT = """
INSERT INTO interlock.outbox (topic, payload, key, bucket, crashes) VALUES ('open', '{}', 'suspect', 0, 2)
"""
SLOW = "4s"


@pytest.fixture
async def place(migrated):
    place = await PostgresPlace(migrated).open()
    await place.park("parked")
    yield place
    await place.close()


async def look(place: PostgresPlace, ours: Lanes) -> int:
    """As the drain looks: how many were found."""
    wanted = lanes("*", blocked_keys=ours.blocked_keys())._replace(depth=ours.depth)
    claims = await place.store.claim(wanted)
    ours.remember(claims.blocked)
    ours.sound(len(claims.messages), wanted.limit)
    return len(claims.messages)


async def test_others_are_found_behind_keys_that_wait_without_a_pause(place):
    await place.conn.execute(WAITING, 400)
    await place.conn.execute(OTHERS)
    ours, found = Lanes(place.store, None, SHARED, ttl=timedelta(seconds=30), emit=lambda _: None), []
    while not found or not ours.has_seen_all:
        found.append(await look(place, ours))
    assert sum(found) == 20


async def test_others_are_found_behind_more_keys_than_are_remembered(place, monkeypatch):
    monkeypatch.setattr(module, "MOST_BLOCKED", 10)
    await place.conn.execute(WAITING, 400)
    await place.conn.execute(OTHERS)
    ours = Lanes(place.store, None, SHARED, ttl=timedelta(seconds=30), emit=lambda _: None)
    assert sum([await look(place, ours) for _ in range(20)]) == 20


async def test_a_look_at_nothing_new_is_not_repeated(place):
    await place.conn.execute(WAITING, 5)
    ours = Lanes(place.store, None, SHARED, ttl=timedelta(seconds=30), emit=lambda _: None)
    assert [(await look(place, ours), ours.has_seen_all) for _ in range(3)] == [(0, False), (0, True), (0, True)]


async def test_to_pass_over_many_keys_takes_no_comparison_of_each_with_each(place):
    count = 20_000
    await place.conn.execute(WAITING, count)
    await place.conn.execute(OTHERS)
    async with place.store._claiming.connection() as conn:
        await conn.execute(f"SET statement_timeout = '{SLOW}'")
    claims = await place.store.claim(lanes("*", blocked_keys=[f"k{n}" for n in range(1, count + 1)]))
    assert len(claims.messages) == 20


async def test_a_suspect_is_found_behind_keys_that_wait(place):
    """It is looked for with what was learned about the others."""
    await place.conn.execute(WAITING, 100)
    await place.conn.execute(SUSPECT)
    emitters = Emitters()
    emitters.declare("*", lambda _message: None, EmitterOptions())
    settings = OutboxSettings(outbox_mode="ordered")
    ours = Lanes(place.store, Locks(), SHARED, ttl=timedelta(seconds=30), emit=lambda _: None)
    place.store.tags = lambda: asyncio.sleep(0, [(SHARED.tag,)])
    drain = Drain(place.store, emitters.resolved(settings), settings, emit=lambda _: None, lanes=ours)
    for _ in range(20):
        await drain.tick()
    await drain._deliver_suspect()
    await drain.finish()
    await drain.abandon()
    assert await place.conn.fetchval("SELECT state FROM interlock.outbox WHERE key = 'suspect'") == "delivered"
