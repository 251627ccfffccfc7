"""Many workers deliver each message once; kills, pauses and restarts lose none and are seen as redeliveries."""

from __future__ import annotations

import asyncio
import random
from statistics import median
from typing import TYPE_CHECKING

import asyncpg
import pytest

from interlock.outbox.publish import Draft
from tests.acceptance.outbox_worker import World
from tests.harness.barrier import Barrier, armed
from tests.harness.waiting import eventually

if TYPE_CHECKING:
    from datetime import timedelta


@pytest.fixture
async def world(migrated, fleet, tmp_path):
    conn = await asyncpg.connect(migrated)
    yield World(migrated, conn, fleet, tmp_path)
    await conn.close()


# A worker that gets no turn for longer than its lease is a fault, and a busy machine has many of those.
UNHURRIED = {"outbox_lease": 60, "outbox_emit_timeout": 50}
# The killer is the test, so no message is to blame for its workers' ends.
BLAMELESS = {"outbox_max_crashes": 1000}


def drafts(count: int, **payload) -> list[Draft]:
    return [Draft("order.paid", {"n": n, **payload}) for n in range(count)]


@pytest.mark.parametrize(
    ("workers", "messages"), [(3, 2_000), pytest.param(8, 50_000, marks=[pytest.mark.slow, pytest.mark.timeout(600)])]
)
async def test_without_faults_each_message_is_delivered_once(world, workers, messages):
    for process in [world.start(**UNHURRIED) for _ in range(workers)]:
        await process.expect("up")
    published = await world.publish(drafts(messages))
    assert await world.all_ended(300) == {"delivered": messages}
    assert world.receiver.counts() == dict.fromkeys((each.message_id for each in published), 1)
    assert len({call["pid"] for call in world.receiver.calls()}) > 1


@pytest.mark.parametrize(
    ("workers", "messages", "every"),
    [(3, 3_000, 0.7), pytest.param(8, 50_000, 2.0, marks=[pytest.mark.slow, pytest.mark.timeout(900)])],
)
async def test_killed_workers_lose_nothing_and_repeat_no_more_than_they_held(world, workers, messages, every):
    options = {**BLAMELESS, "sleep": 0.005}
    alive = [await world.worker(**options) for _ in range(workers)]
    published = await world.publish(drafts(messages))
    kills, ended = 0, asyncio.create_task(world.all_ended(600))
    await eventually(world.receiver.calls, 60, "the first delivery")
    while not ended.done() and kills < 100:
        await asyncio.wait({ended}, timeout=every * (kills > 0))
        if not ended.done():
            alive.pop(random.randrange(len(alive))).kill()
            kills += 1
            alive.append(await world.worker(**options))
    assert await ended == {"delivered": messages}
    counts = world.receiver.counts()
    assert set(counts) == {each.message_id for each in published}
    assert kills > 0
    assert sum(counts.values()) - messages <= kills * 100  # two batches are the most that a worker holds


async def test_control_two_processes_that_select_then_emit_then_save_emit_twice(world, tmp_path):
    await world.publish(drafts(1))
    barrier = Barrier(tmp_path, "naive.selected")
    workers = [world.start_naive(armed(barrier)) for _ in range(2)]
    for worker in workers:
        await worker.expect("selected", 60)
    barrier.release()
    assert sorted([(await worker.expect("saved"))["rows"] for worker in workers]) == ["UPDATE 0", "UPDATE 1"]
    assert list(world.receiver.counts().values()) == [2]


async def test_two_processes_that_claim_first_emit_once(world, tmp_path):
    barrier = Barrier(tmp_path, "outbox.emitting")
    for _ in range(2):
        await world.worker(env=armed(barrier), **UNHURRIED)
    await world.publish(drafts(1))
    await barrier.reached()
    await world.publish([Draft("order.paid", {"n": 1}, message_id="later")])
    await eventually(lambda: len(world.receiver.calls()) == 2, 60, "the other message, while the first is in hand")
    barrier.release()
    assert await world.all_ended() == {"delivered": 2}
    assert set(world.receiver.counts().values()) == {1}


CRASH_POINTS = {
    # where the worker dies: how often the receiver is called, and how many crashes the message is charged with
    "before the claim commits": (1, 0),
    "outbox.after_claim": (1, 1),
    "outbox.emitting": (2, 1),
    "outbox.after_emit": (2, 1),
    "outbox.after_settle": (1, 0),
}


@pytest.mark.parametrize("point", CRASH_POINTS)
async def test_a_worker_that_dies_at_any_point_leaves_exactly_what_follows_from_it(world, point):
    await world.publish(drafts(1))
    if point == "before the claim commits":
        await die_before_commit(world)
    else:
        victim = world.start(env=armed(exit_at=[point]))
        assert await victim.wait(60) == 137
    await world.worker()
    assert await world.all_ended() == {"delivered": 1}
    row = await world.conn.fetchrow("SELECT * FROM interlock.outbox")
    calls = world.receiver.calls()
    assert (len(calls), row["crashes"]) == CRASH_POINTS[point]
    assert [call["again"] for call in calls] == ([False, True] if len(calls) > 1 else [row["claims"] > 1])
    assert len({call["id"] for call in calls}) == 1


HOLD_COMMITS = """
CREATE FUNCTION hold_commit() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN null; END $$;
CREATE CONSTRAINT TRIGGER hold_commit AFTER UPDATE ON interlock.outbox DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (new.claim_token IS NOT NULL) EXECUTE FUNCTION hold_commit();
"""


async def die_before_commit(world) -> None:
    """The claim has run to its end and its commit has begun when the worker and its connection are cut off."""
    at_commit = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()"
    await world.conn.execute(HOLD_COMMITS)
    await world.conn.execute("SELECT pg_advisory_lock(4711)")
    victim = world.start()
    backend = await eventually(lambda: world.conn.fetchval(at_commit), 60, "a claim that commits")
    victim.kill()
    await world.conn.execute("SELECT pg_terminate_backend($1)", backend)
    await eventually(lambda: _gone(world.conn, backend), what="the end of its connection")
    await world.conn.execute("SELECT pg_advisory_unlock(4711); DROP TRIGGER hold_commit ON interlock.outbox")
    row = await world.conn.fetchrow("SELECT claims, claim_token FROM interlock.outbox")
    assert tuple(row) == (0, None)


async def _gone(conn, backend: int) -> bool:
    return not await conn.fetchval("SELECT count(*) FROM pg_stat_activity WHERE pid = $1", backend)


async def sleep_past_the_lease(world, folder, **sleeper_options):
    """A worker stopped after its first emit, and another that delivers the same message when the first wakes up."""
    await world.publish(drafts(20))
    asleep = Barrier(folder, "outbox.after_emit")
    sleeper = await world.worker(env=armed(asleep), outbox_concurrency=1, outbox_lease=4, **sleeper_options)
    await asleep.reached()
    sleeper.stop()
    token = (await first(world))["claim_token"]
    delivering = Barrier(folder, "outbox.emitting")
    await world.worker(env=armed(delivering), outbox_concurrency=1, **UNHURRIED)
    await delivering.reached()
    taken = "SELECT bool_and(coalesce(claim_token <> $1, false)) FROM interlock.outbox"
    await eventually(lambda: world.conn.fetchval(taken, token), what="all that the sleeper held in other hands")
    asleep.release()
    sleeper.cont()
    return sleeper, delivering


def calls_of(world, process) -> int:
    return sum(call["pid"] == process.pid for call in world.receiver.calls())


async def first(world):
    return await world.conn.fetchrow("SELECT * FROM interlock.outbox ORDER BY id LIMIT 1")


async def test_a_worker_that_slept_past_its_lease_settles_nothing_and_starts_nothing(world, tmp_path):
    sleeper, delivering = await sleep_past_the_lease(world, tmp_path)
    held = await first(world)
    assert (await sleeper.expect("refused"))["answer"] == "stale"
    assert await first(world) == held
    assert held["state"] == "pending"
    delivering.release()
    assert await world.all_ended() == {"delivered": 20}
    assert calls_of(world, sleeper) == 1
    assert set(world.receiver.counts().values()) == {1, 2}


async def test_control_without_the_token_a_sleeper_settles_what_another_delivers(world, tmp_path):
    guards = {"outbox/deliver": "\n      and o.claim_token = g.token"}
    _, delivering = await sleep_past_the_lease(world, tmp_path, unguarded=guards)

    async def settled() -> bool:
        return (await first(world))["state"] == "delivered"

    await eventually(settled, 60, "a settlement under the other one's hands")
    delivering.release()


async def test_control_a_sleeper_that_does_not_look_at_its_lease_goes_on_emitting(world, tmp_path):
    sleeper, delivering = await sleep_past_the_lease(world, tmp_path, blind=True)
    await eventually(lambda: calls_of(world, sleeper) > 1, 60, "an emit of what belongs to another")
    delivering.release()


async def test_a_worker_that_wakes_up_after_the_end_learns_that_it_is_over(world, tmp_path):
    await world.publish(drafts(1))
    barrier = Barrier(tmp_path, "outbox.after_emit")
    sleeper = await world.worker(env=armed(barrier))
    await barrier.reached()
    sleeper.stop()
    await world.worker()
    assert await world.all_ended() == {"delivered": 1}
    before = await first(world)
    barrier.release()
    sleeper.cont()
    assert (await sleeper.expect("refused"))["answer"] == "terminal"
    assert await first(world) == before


SLOW_EMITS = [
    (25, {"sleep": 0.2, "outbox_lease": 3, "outbox_emit_timeout": 2}),
    pytest.param(100, {"sleep": 0.3, "outbox_lease": 5, "outbox_emit_timeout": 2}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("messages", "pace"), SLOW_EMITS)
async def test_no_delivery_starts_with_less_lease_than_its_time(world, messages, pace):
    """One by one they take longer than the lease: what waits is renewed, and nobody else gets it."""
    await world.publish(drafts(messages))
    for _ in range(2):
        await world.worker(**pace, outbox_concurrency=1, probing=True)
    assert await world.all_ended(120) == {"delivered": messages}
    assert set(world.receiver.counts().values()) == {1}
    assert min(call["lease"] for call in world.receiver.calls()) >= pace["outbox_emit_timeout"]


async def test_control_without_a_look_at_the_lease_deliveries_start_after_its_end(world):
    messages, pace = SLOW_EMITS[0]
    await world.publish(drafts(messages))
    await world.worker(**pace, outbox_concurrency=1, probing=True, blind=True)
    await eventually(lambda: len(world.receiver.calls()) >= messages, 60, "every call")
    assert min(call["lease"] for call in world.receiver.calls()) < pace["outbox_emit_timeout"]


# Short, because each crash is noticed at its end, and long enough for a worker that lives to be in time.
SUSPICIOUS = {"outbox_lease": 3, "outbox_emit_timeout": 1}


async def test_poison_that_raises_and_poison_that_kills_are_told_apart_and_harm_nobody_else(world):
    await world.publish([*drafts(40), Draft("order.paid", {"fail": True}, message_id="raises")])
    await world.publish([Draft("order.paid", {"exit": True}, message_id="kills"), *drafts(40)])
    ended = asyncio.create_task(world.all_ended(240))
    worker = world.start(**SUSPICIOUS)
    while not ended.done():
        await asyncio.wait({ended}, timeout=0.05)
        if worker.returncode is not None:
            worker = world.start(**SUSPICIOUS)
    assert await ended == {"delivered": 80, "dead": 2}
    dead = await world.conn.fetch(
        "SELECT message_id, failure, attempts FROM interlock.outbox WHERE state = 'dead' ORDER BY 1"
    )
    assert [tuple(row) for row in dead] == [("kills", "crash_loop", 0), ("raises", "max_attempts", 8)]
    assert world.receiver.counts()["kills"] == 3


async def test_control_without_isolation_the_neighbours_of_a_killer_die_with_it(world):
    """They are in the same hands at each crash, and are charged with it."""
    alone = "(o.crashes + (o.claim_token is not null)::integer + 1 = r.crash_limit) = :isolated::boolean"
    options = {"outbox_lease": 1.0, "outbox_emit_timeout": 0.5, "outbox_concurrency": 1}
    options |= {"unguarded": {"outbox/claim": alone}, "instead": "not :isolated::boolean"}
    await world.publish([Draft("order.paid", {"exit": True}), *drafts(10)])
    ended = asyncio.create_task(world.all_ended(240))
    worker = world.start(**options)
    while not ended.done():
        await asyncio.wait({ended}, timeout=0.05)
        if worker.returncode is not None:
            worker = world.start(**options)
    assert (await ended)["dead"] > 1


async def test_a_database_that_restarts_in_the_middle_loses_nothing(own_postgres, fleet, tmp_path):
    from tests.harness.schema import apply_schema

    await apply_schema(own_postgres.dsn)
    conn = await asyncpg.connect(own_postgres.dsn)
    world = World(own_postgres.dsn, conn, fleet, tmp_path)
    await world.publish(drafts(400))
    await world.worker(sleep=0.02, outbox_concurrency=4)
    await eventually(lambda: len(world.receiver.calls()) > 50, 60, "some deliveries")
    await conn.close()
    own_postgres.restart()
    world.conn = await asyncpg.connect(own_postgres.dsn)
    assert await world.all_ended() == {"delivered": 400}
    assert len(world.receiver.counts()) == 400
    await world.conn.close()


async def latencies(world, *broken: str) -> list[timedelta]:
    """From publishing to the settled delivery of a healthy topic beside others, by the database's clock."""
    took = "SELECT ended_at - published_at FROM interlock.outbox WHERE id = $1 AND state = 'delivered'"
    found = []
    for n in range(10):
        published = await world.publish([Draft("healthy", {"n": n}), *(Draft(each, {"fail": True}) for each in broken)])
        found.append(await eventually(lambda one=published[0].id: world.conn.fetchval(took, one), 60, "the delivery"))
    return found


async def test_a_topic_that_always_fails_does_not_slow_the_others_down(world):
    """Each delivery takes 30 ms, as one over a network does; the broken topic fails at once, with a backlog.

    The two are measured in turn, so that a machine that is busy for a while slows both down.
    """
    await world.worker(sleep=0.03)
    alone, beside = [], []
    for broken in ("broken-1", "broken-2", "broken-3", "broken-4"):
        alone += await latencies(world)
        await world.publish([Draft(broken, {"fail": True}) for _ in range(300)])
        beside += await latencies(world, broken)
        breaker = "SELECT breaker FROM interlock.outbox_topic WHERE topic = $1"
        assert await world.conn.fetchval(breaker, broken) != "closed"
        await world.conn.execute("DELETE FROM interlock.outbox WHERE topic = $1", broken)
    assert median(beside) <= 2 * median(alone)
