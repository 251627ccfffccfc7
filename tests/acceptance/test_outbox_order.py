"""In ordered mode first deliveries of a key keep the order of their commits, whoever dies or fails."""

from __future__ import annotations

import asyncio
import random

import asyncpg
import pytest

from interlock.outbox.publish import Draft
from tests.acceptance.outbox_worker import World
from tests.harness.waiting import eventually

ORDERED = {"outbox_mode": "ordered", "outbox_lanes": 8}


@pytest.fixture
async def world(migrated, fleet, tmp_path):
    conn = await asyncpg.connect(migrated)
    yield World(migrated, conn, fleet, tmp_path)
    await conn.close()


@pytest.mark.parametrize(
    ("workers", "keys", "each", "every"),
    [(3, 20, 40, 1.5), pytest.param(8, 100, 500, 2.0, marks=[pytest.mark.slow, pytest.mark.timeout(900)])],
)
async def test_kills_and_failures_do_not_invert_first_deliveries(world, workers, keys, each, every):
    options = {**ORDERED, "failing": 0.05, "sleep": 0.002, "outbox_max_attempts": 50}
    await world.publish([Draft("order.paid", {"n": n}, key=f"k{key}") for n in range(each) for key in range(keys)])
    alive = [world.start(**options) for _ in range(workers)]
    kills, ended = 0, asyncio.create_task(world.all_ended(600))
    await eventually(lambda: len(world.receiver.calls()) > keys, 60, "some deliveries")
    while not ended.done() and kills < 50:
        alive.pop(random.randrange(len(alive))).kill()
        kills += 1
        alive.append(world.start(**options))
        await asyncio.wait({ended}, timeout=every)
    assert await ended == {"delivered": keys * each}
    assert world.receiver.inversions() == []
    assert len(world.receiver.counts()) == keys * each
    assert kills > 0


async def test_control_without_order_failures_do_invert(world):
    await world.publish([Draft("order.paid", {"n": n}, key=f"k{key}") for n in range(20) for key in range(5)])
    await world.worker(failing=0.3, outbox_max_attempts=50)
    assert await world.all_ended() == {"delivered": 100}
    last, inverted = {}, 0
    delivered = await world.conn.fetch("SELECT key, payload->>'n' AS n FROM interlock.outbox ORDER BY ended_at, id")
    for row in delivered:
        inverted += int(row["n"]) < last.get(row["key"], -1)
        last[row["key"]] = int(row["n"])
    assert inverted > 0


@pytest.mark.parametrize(("on_dead", "delivered"), [("hold", 2), ("continue", 5)])
async def test_a_dead_message_holds_its_key_or_lets_it_go_on(world, on_dead, delivered):
    held = [Draft("order.paid", {"n": n, "dead": n == 2}, key="k") for n in range(5)]
    await world.publish([*held, *[Draft("order.paid", {"n": n}, key="other") for n in range(3)]])
    await world.worker(**ORDERED, on_dead=on_dead)
    others = 3
    expected = {"delivered": others + (2 if on_dead == "hold" else 4), "dead": 1}
    if on_dead == "hold":
        expected["pending"] = 2
    await eventually(lambda: _same(world, expected), 30, f"{expected}")
    assert sum(call["key"] == "k" for call in world.receiver.calls()) == delivered + (on_dead == "hold")


async def _same(world, expected) -> bool:
    return await world.states() == expected


async def test_a_transaction_that_commits_late_is_delivered_not_skipped(world, migrated):
    """A lower number that becomes visible after higher ones were delivered is found all the same."""
    late = await asyncpg.connect(migrated)
    transaction = late.transaction()
    await transaction.start()
    await world.app.outbox.apublish(late, "order.paid", {"n": 0}, key="late")
    await world.publish([Draft("order.paid", {"n": n}, key=f"k{n}") for n in range(1, 10)])
    await world.worker(**ORDERED)
    await eventually(lambda: len(world.receiver.calls()) == 9, 30, "the others' delivery")
    await transaction.commit()
    assert await world.all_ended() == {"delivered": 10}
    assert await world.conn.fetchval("SELECT id FROM interlock.outbox WHERE key = 'late'") == 1
    await late.close()


async def test_two_publishers_of_one_key_are_delivered_in_the_order_of_their_commits(world, migrated):
    """The second waits for the first one's commit, so its number cannot become claimable before."""
    first = await asyncpg.connect(migrated)
    transaction = first.transaction()
    await transaction.start()
    await world.app.outbox.apublish(first, "order.paid", {"n": 0}, key="k")
    second = asyncio.create_task(world.publish([Draft("order.paid", {"n": 1}, key="k")]))
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND wait_event = 'advisory'"
    await eventually(lambda: first.fetchval(waiting), 10, "a publisher that waits")
    assert not second.done()
    await transaction.commit()
    await second
    await world.worker(**ORDERED)
    assert await world.all_ended() == {"delivered": 2}
    assert [call["n"] for call in world.receiver.calls()] == [0, 1]
    await first.close()


async def test_lanes_are_shared_fairly_and_taken_over_when_their_holder_dies(world):
    one, two = await world.worker(**ORDERED), await world.worker(**ORDERED)
    count = "SELECT holder, count(*) FROM interlock.lock_slot WHERE expires_at > statement_timestamp() GROUP BY 1"

    async def shares() -> list[int]:
        return sorted(row["count"] for row in await world.conn.fetch(count))

    await eventually(lambda: _equal(shares, [4, 4]), 30, "two fair shares")
    one.kill()
    await eventually(lambda: _equal(shares, [8]), 30, "all lanes in one hand")
    assert two.returncode is None


async def _equal(answer, expected) -> bool:
    return await answer() == expected
