"""Many workers deliver each message once; kills, pauses and restarts lose none and are seen as redeliveries."""

from __future__ import annotations

import asyncio
import random
import time

import asyncpg
import pytest

from interlock.outbox.publish import Draft
from tests.acceptance.outbox_worker import World
from tests.harness.barrier import Barrier, armed
from tests.harness.waiting import eventually


@pytest.fixture
async def world(migrated, fleet, tmp_path):
    conn = await asyncpg.connect(migrated)
    yield World(migrated, conn, fleet, tmp_path)
    await conn.close()


def drafts(count: int, **payload) -> list[Draft]:
    return [Draft("order.paid", {"n": n, **payload}) for n in range(count)]


@pytest.mark.parametrize(
    ("workers", "messages"), [(3, 2_000), pytest.param(8, 50_000, marks=[pytest.mark.slow, pytest.mark.timeout(600)])]
)
async def test_without_faults_each_message_is_delivered_once(world, workers, messages):
    for process in [world.start() for _ in range(workers)]:
        await process.expect("up", 60)
    published = await world.publish(drafts(messages))
    assert await world.all_ended(300) == {"delivered": messages}
    assert world.receiver.counts() == dict.fromkeys((each.message_id for each in published), 1)
    assert len({call["pid"] for call in world.receiver.calls()}) > 1


@pytest.mark.parametrize(
    ("workers", "messages", "every"),
    [(3, 3_000, 0.7), pytest.param(8, 50_000, 2.0, marks=[pytest.mark.slow, pytest.mark.timeout(900)])],
)
async def test_killed_workers_lose_nothing_and_repeat_no_more_than_they_held(world, workers, messages, every):
    alive = [await world.worker(sleep=0.005) for _ in range(workers)]
    published = await world.publish(drafts(messages))
    kills, ended = 0, asyncio.create_task(world.all_ended(600))
    await eventually(world.receiver.calls, 60, "the first delivery")
    while not ended.done() and kills < 100:
        await asyncio.wait({ended}, timeout=every * (kills > 0))
        if not ended.done():
            alive.pop(random.randrange(len(alive))).kill()
            kills += 1
            alive.append(world.start(sleep=0.005))
    assert await ended == {"delivered": messages}
    counts = world.receiver.counts()
    assert set(counts) == {each.message_id for each in published}
    assert kills > 0
    assert sum(counts.values()) - messages <= kills * 100  # two batches are the most that a worker holds


CRASH_POINTS = {
    # where the worker dies: how often the receiver is called, and how many crashes the message is charged with
    "outbox.before_claim": (1, 0),
    "outbox.after_claim": (1, 1),
    "outbox.emitting": (2, 1),
    "outbox.after_emit": (2, 1),
    "outbox.after_settle": (1, 0),
}


@pytest.mark.parametrize("point", CRASH_POINTS)
async def test_a_worker_that_dies_at_any_point_leaves_exactly_what_follows_from_it(world, point):
    await world.publish(drafts(1))
    victim = world.start(env=armed(exit_at=[point]))
    assert await victim.wait(60) == 137
    await world.worker()
    assert await world.all_ended() == {"delivered": 1}
    row = await world.conn.fetchrow("SELECT * FROM interlock.outbox")
    calls = world.receiver.calls()
    assert (len(calls), row["crashes"]) == CRASH_POINTS[point]
    assert [call["again"] for call in calls] == ([False, True] if len(calls) > 1 else [row["claims"] > 1])
    assert len({call["id"] for call in calls}) == 1


async def test_a_worker_that_slept_past_its_lease_settles_nothing_and_starts_nothing(world, tmp_path):
    await world.publish(drafts(20))
    barrier = Barrier(tmp_path, "outbox.after_emit")
    sleeper = await world.worker(env=armed(barrier), outbox_concurrency=1)
    await barrier.reached()
    sleeper.stop()
    await world.worker()
    assert await world.all_ended() == {"delivered": 20}
    before = await world.conn.fetch("SELECT * FROM interlock.outbox ORDER BY id")
    called = len([call for call in world.receiver.calls() if call["pid"] == sleeper.pid])
    barrier.release()
    sleeper.cont()
    assert (await sleeper.expect("refused"))["answer"] == "terminal"
    assert await world.conn.fetch("SELECT * FROM interlock.outbox ORDER BY id") == before
    assert called == 1
    assert len([call for call in world.receiver.calls() if call["pid"] == sleeper.pid]) == 1
    assert set(world.receiver.counts().values()) == {1, 2}


@pytest.mark.parametrize("messages", [25, pytest.param(100, marks=pytest.mark.slow)])
async def test_no_delivery_starts_with_less_lease_than_its_time(world, messages):
    """One by one they take longer than the lease: what waits is renewed, and nobody else gets it."""
    await world.publish(drafts(messages))
    await world.worker(sleep=0.1, outbox_concurrency=1)
    await world.worker(sleep=0.1, outbox_concurrency=1)
    assert await world.all_ended(120) == {"delivered": messages}
    assert set(world.receiver.counts().values()) == {1}


async def test_poison_that_raises_and_poison_that_kills_are_told_apart_and_harm_nobody_else(world):
    await world.publish([*drafts(40), Draft("order.paid", {"fail": True}, message_id="raises")])
    await world.publish([Draft("order.paid", {"exit": True}, message_id="kills"), *drafts(40)])
    ended = asyncio.create_task(world.all_ended(100))
    worker = world.start(outbox_lease=1.0, outbox_emit_timeout=0.5)
    while not ended.done():
        await asyncio.wait({ended}, timeout=0.05)
        if worker.returncode is not None:
            worker = world.start(outbox_lease=1.0, outbox_emit_timeout=0.5)
    assert await ended == {"delivered": 80, "dead": 2}
    dead = await world.conn.fetch(
        "SELECT message_id, failure, attempts FROM interlock.outbox WHERE state = 'dead' ORDER BY 1"
    )
    assert [tuple(row) for row in dead] == [("kills", "crash_loop", 0), ("raises", "max_attempts", 8)]
    assert world.receiver.counts()["kills"] == 3


async def test_a_database_that_restarts_in_the_middle_loses_nothing(own_postgres, fleet, tmp_path):
    from tests.harness.schema import apply_schema

    await apply_schema(own_postgres.dsn)
    conn = await asyncpg.connect(own_postgres.dsn)
    world = World(own_postgres.dsn, conn, fleet, tmp_path)
    await world.publish(drafts(400))
    await world.worker(sleep=0.02, outbox_concurrency=4)
    await eventually(lambda: len(world.receiver.calls()) > 50, 30, "some deliveries")
    await conn.close()
    own_postgres.restart()
    world.conn = await asyncpg.connect(own_postgres.dsn)
    assert await world.all_ended() == {"delivered": 400}
    assert len(world.receiver.counts()) == 400
    await world.conn.close()


async def latencies(world, worker_topics: list[str]) -> float:
    """The median time from publishing to delivery of the healthy topic, in seconds."""
    found = []
    for n in range(30):
        await world.publish([Draft(topic, {"n": n, "fail": topic == "broken"}) for topic in worker_topics])
        began, before = time.perf_counter(), n + 1
        await eventually(
            lambda wanted=before: sum(call["topic"] == "healthy" for call in world.receiver.calls()) >= wanted, 10
        )
        found.append(time.perf_counter() - began)
    return sorted(found)[len(found) // 2]


async def test_a_topic_that_always_fails_does_not_slow_the_others_down(world, fleet, migrated, tmp_path):
    await world.worker()
    alone = await latencies(world, ["healthy"])
    (tmp_path / "receiver.log").unlink()
    await world.publish([Draft("broken", {"fail": True}) for _ in range(300)])
    beside = await latencies(world, ["healthy", "broken"])
    assert beside <= 2 * alone + 0.03
    assert await world.conn.fetchval("SELECT breaker FROM interlock.outbox_topic WHERE topic = 'broken'") != "closed"
