"""In ordered mode first deliveries of a key keep the order of their commits, whoever dies or fails."""

from __future__ import annotations

import asyncio
import random
import time

import asyncpg
import pytest

from interlock.outbox.publish import Draft
from tests.acceptance.outbox_worker import World
from tests.harness.barrier import Barrier, armed
from tests.harness.unguarded import take_guard_off
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
    options = {**ORDERED, "failing": 0.05, "sleep": 0.002, "outbox_max_attempts": 1000, "outbox_max_crashes": 1000}
    await world.publish([Draft("order.paid", {"n": n}, key=f"k{key}") for n in range(each) for key in range(keys)])
    alive = [world.start(**options) for _ in range(workers)]
    kills, ended = 0, asyncio.create_task(world.all_ended(600))
    await eventually(lambda: len(world.receiver.calls()) > keys, 60, "some deliveries")
    while not ended.done() and kills < 50:
        alive.pop(random.randrange(len(alive))).kill()
        kills += 1
        alive.append(await world.worker(**options))
        await asyncio.wait({ended}, timeout=every)
    assert await ended == {"delivered": keys * each}
    assert world.receiver.inversions() == []
    assert len(world.receiver.counts()) == keys * each
    assert kills > 0


@pytest.mark.parametrize(("mode", "order"), [("ordered", [0, 1]), ("single", [0, 1]), ("claim", [1, 0])])
async def test_a_worker_held_before_its_emit_is_overtaken_only_where_no_order_is_kept(world, tmp_path, mode, order):
    """The last row is the control: without the order of keys the same interleaving inverts two messages every time."""
    await world.publish([Draft("order.paid", {"n": 0}, key="k")])
    barrier = Barrier(tmp_path, "outbox.after_claim")
    options = {"outbox_mode": mode, "outbox_lanes": 8, "outbox_lease": 30, "outbox_emit_timeout": 20}
    await world.worker(env=armed(barrier), **options)
    await barrier.reached()
    await world.publish([Draft("order.paid", {"n": 1}, key="k")])
    other = await world.worker(**options)
    if mode == "claim":
        await eventually(lambda: len(world.receiver.calls()) == 1, 60, "the delivery of the second message")
    else:
        await other.expect("looked")
    barrier.release()
    assert await world.all_ended() == {"delivered": 2}
    assert [call["n"] for call in world.receiver.calls()] == order
    assert len(world.receiver.inversions()) == (mode == "claim")


@pytest.mark.parametrize(("on_dead", "delivered"), [("hold", 2), ("continue", 5)])
async def test_a_dead_message_holds_its_key_or_lets_it_go_on(world, on_dead, delivered):
    held = [Draft("order.paid", {"n": n, "dead": n == 2}, key="k") for n in range(5)]
    await world.publish([*held, *[Draft("order.paid", {"n": n}, key="other") for n in range(3)]])
    await world.worker(**ORDERED, on_dead=on_dead)
    others = 3
    expected = {"delivered": others + (2 if on_dead == "hold" else 4), "dead": 1}
    if on_dead == "hold":
        expected["pending"] = 2
    await eventually(lambda: _same(world, expected), 60, f"{expected}")
    assert sum(call["key"] == "k" for call in world.receiver.calls()) == delivered + (on_dead == "hold")


async def _same(world, expected) -> bool:
    return await world.states() == expected


@pytest.mark.parametrize("seconds", [0.5, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("options", [ORDERED, {}], ids=["ordered", "claim"])
async def test_a_transaction_that_commits_late_is_delivered_not_skipped(world, migrated, seconds, options):
    """A lower number that becomes visible long after higher ones were delivered is found all the same."""
    late = await asyncpg.connect(migrated)
    transaction = late.transaction()
    await transaction.start()
    await world.app.outbox.apublish(late, "order.paid", {"n": 0}, key="late")
    until = time.monotonic() + seconds
    await world.worker(**options)
    count = 0
    while time.monotonic() < until:
        count += 1
        await world.publish([Draft("order.paid", {"n": count}, key=f"k{count}")])
        await eventually(lambda most=count: len(world.receiver.calls()) == most, 60, "the others' delivery")
    await transaction.commit()
    assert await world.all_ended() == {"delivered": count + 1}
    assert await world.conn.fetchval("SELECT id FROM interlock.outbox WHERE key = 'late'") == 1
    assert [call["n"] for call in world.receiver.calls()] == [*range(1, count + 1), 0]
    await late.close()


async def test_two_publishers_of_one_key_are_delivered_in_the_order_of_their_commits(world, migrated):
    """The second waits for the first one's commit, so its number cannot become claimable before."""
    first = await asyncpg.connect(migrated)
    transaction = first.transaction()
    await transaction.start()
    await world.app.outbox.apublish(first, "order.paid", {"n": 0}, key="k")
    second = asyncio.create_task(world.publish([Draft("order.paid", {"n": 1}, key="k")]))
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND wait_event = 'advisory'"
    waiting += " AND datname = current_database()"
    await eventually(lambda: first.fetchval(waiting), what="a publisher that waits")
    assert not second.done()
    await transaction.commit()
    await second
    await world.worker(**ORDERED)
    assert await world.all_ended() == {"delivered": 2}
    assert [call["n"] for call in world.receiver.calls()] == [0, 1]
    await first.close()


async def test_control_without_the_locks_of_keys_the_second_publisher_overtakes_the_first(world, migrated, monkeypatch):
    take_guard_off(monkeypatch, {"outbox/publish": "    cross join (select count(*) from locked) l\n"})
    first = await asyncpg.connect(migrated)
    transaction = first.transaction()
    await transaction.start()
    await world.app.outbox.apublish(first, "order.paid", {"n": 0}, key="k")
    await world.publish([Draft("order.paid", {"n": 1}, key="k")])
    await world.worker(**ORDERED)
    await eventually(world.receiver.calls, 60, "the second one's delivery")
    await transaction.commit()
    assert await world.all_ended() == {"delivered": 2}
    assert [call["n"] for call in world.receiver.calls()] == [1, 0]
    await first.close()


async def test_a_single_worker_delivers_and_another_takes_over_when_it_dies(world):
    single = {"outbox_mode": "single", "outbox_lease": 6}
    workers = [await world.worker(**single) for _ in range(2)]
    await world.publish([Draft("order.paid", {"n": n}, key=f"k{n % 7}") for n in range(100)])
    await world.publish([Draft("order.paid", {"n": n}) for n in range(20)])
    assert await world.all_ended() == {"delivered": 120}
    [active] = {call["pid"] for call in world.receiver.calls()}
    assert world.receiver.inversions() == []
    [dying] = [each for each in workers if each.pid == active]
    [standby] = [each for each in workers if each.pid != active]
    dying.kill()
    await world.publish([Draft("order.paid", {"n": 100 + n}, key=f"k{n % 7}") for n in range(20)])
    assert await world.all_ended() == {"delivered": 140}
    assert {call["pid"] for call in world.receiver.calls()[120:]} == {standby.pid}


@pytest.mark.parametrize(("old", "new"), [(8, 4), (4, 8), (16, 1)])
async def test_of_workers_that_count_lanes_differently_those_with_the_fewest_deliver(world, old, new):
    """So a changed number of lanes stops nothing while servers are replaced one by one, and inverts nothing."""
    lanes = {"outbox_mode": "ordered", "outbox_lease": 6}
    first = await world.worker(**lanes, outbox_lanes=old)
    await world.publish([Draft("order.paid", {"n": n}, key=f"k{n % 20}") for n in range(200)])
    await eventually(world.receiver.calls, 60, "the first delivery")
    second = await world.worker(**lanes, outbox_lanes=new)
    fewest = first if old < new else second
    await eventually(lambda: _only_holder(world, min(old, new)), 60, "lanes of those with the fewest alone")
    await world.publish([Draft("order.paid", {"n": 200 + n}, key=f"k{n % 20}") for n in range(200)])
    assert await world.all_ended() == {"delivered": 400}
    assert world.receiver.inversions() == []
    late = [call["pid"] for call in world.receiver.calls() if call["n"] >= 200]
    assert set(late) == {fewest.pid}


async def _only_holder(world, lanes: int) -> bool:
    """Whether all lanes are held, and all by workers that count so many."""
    held = "SELECT array_agg(slots) FROM interlock.lock_slot WHERE expires_at > statement_timestamp()"
    return await world.conn.fetchval(held) == [lanes] * lanes


@pytest.mark.parametrize("served", [("outbox_partitions", "eu", "us"), ("outbox_topics", "eu.*", "us.*")])
async def test_workers_that_serve_different_things_do_not_share_lanes(world, served):
    """A lane in the hands of one who does not deliver what is in it would keep its keys waiting."""
    option, *places = served
    for place in places:
        await world.worker(**ORDERED, **{option: (place,)})
    await eventually(lambda: _held(world, 16), 60, "all lanes of both")
    regions = [place.removesuffix(".*") for place in places]
    await world.publish(
        [
            Draft(f"{region}.paid", {"n": n}, key=f"{region}{n % 30}", partition=region)
            for n in range(90)
            for region in regions
        ]
    )
    assert await world.all_ended() == {"delivered": 180}
    assert world.receiver.inversions() == []


async def _held(world, count: int) -> bool:
    held = "SELECT count(*) FROM interlock.lock_slot WHERE expires_at > statement_timestamp()"
    return await world.conn.fetchval(held) == count


async def test_lanes_are_shared_fairly_and_taken_over_when_their_holder_dies(world):
    one, two = await world.worker(**ORDERED), await world.worker(**ORDERED)
    count = "SELECT holder, count(*) FROM interlock.lock_slot WHERE expires_at > statement_timestamp() GROUP BY 1"

    async def shares() -> list[int]:
        return sorted(row["count"] for row in await world.conn.fetch(count))

    await eventually(lambda: _equal(shares, [4, 4]), 60, "two fair shares")
    one.kill()
    await eventually(lambda: _equal(shares, [8]), 60, "all lanes in one hand")
    assert two.returncode is None


async def _equal(answer, expected) -> bool:
    return await answer() == expected
