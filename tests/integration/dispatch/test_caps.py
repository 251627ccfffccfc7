"""Caps are exact: lock first, count next, in two statements. A full group is in nobody's way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import asyncpg
import pytest

from interlock import failpoints
from interlock.dispatch.apply_capacity_limits import Held
from interlock.dispatch.load_dispatch_capacity import LOCKS_AT_ONCE, Capacity
from interlock.dispatch.load_queued_jobs import load_queued_jobs
from interlock.store.dispatching import Active, Dispatching
from interlock.store.settings import StoreSettings
from tests.harness.waiting import eventually
from tests.integration.dispatch.ramp import Hands

if TYPE_CHECKING:
    from interlock.dispatch.dispatcher import JobDispatcher

LOCK_AND_COUNT_AT_ONCE = """
WITH locked AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(hashtextextended('interlock dispatch interlock ' || scope, 0))
    FROM unnest($1::text[]) AS scope
)
SELECT e.group_id, count(e.id) AS active FROM locked LEFT JOIN interlock.execution e ON e.ended_at IS NULL
GROUP BY e.group_id
"""


class LocksAndCountsAtOnce(Dispatching):
    """The obvious version: its count has a snapshot from before the wait for the lock."""

    async def lock_if_free(self, conn, *, all_groups, group_ids):
        scopes = [*(["all"] if all_groups else []), *map(str, sorted(group_ids))]
        rows = await conn.fetch(LOCK_AND_COUNT_AT_ONCE, scopes)
        self._counted = {row["group_id"]: Active(row["active"], row["active"]) for row in rows if row["group_id"]}
        return {*([None] if all_groups else []), *group_ids}

    async def count_active(self, conn, *, excluded):  # noqa: ARG002  counted already
        return self._counted


class Gate:
    """Holds the first who arrives until it is opened."""

    def __init__(self, name: str) -> None:
        self.reached, self.open = asyncio.Event(), asyncio.Event()
        failpoints.arm(name, self)

    async def __call__(self) -> None:
        if not self.reached.is_set():
            self.reached.set()
            await self.open.wait()


@pytest.fixture(autouse=True)
def nothing_stays_armed():
    yield
    failpoints.disarm()


async def held_before_commit(dispatcher) -> tuple[Gate, asyncio.Task]:
    gate = Gate("dispatch.before_commit")
    tick = asyncio.create_task(dispatcher.tick())
    await asyncio.wait_for(gate.reached.wait(), 60)
    return gate, tick


@pytest.mark.parametrize("which", ["group", "global"])
async def test_a_dispatcher_that_comes_while_another_counts_takes_nothing(ramp, which):
    settings = {"max_active_jobs": 3} if which == "global" else {}
    await ramp.group("default", cap=3 if which == "group" else None)
    await ramp.queue(10)
    first, second = ramp.dispatcher(**settings), ramp.dispatcher(**settings)
    gate, tick = await held_before_commit(first)
    cycle = await asyncio.wait_for(second.tick(), 60)
    assert not cycle.dispatched
    assert cycle.sleep.total_seconds() < 0.1
    gate.open.set()
    assert len((await tick).dispatched) == 3
    assert not (await second.tick()).dispatched
    assert await ramp.count_active() == 3


@pytest.mark.parametrize("which", ["group", "global"])
async def test_control_locking_and_counting_in_one_statement_overshoots(ramp, conn, which):
    settings = {"max_active_jobs": 3} if which == "global" else {}
    await ramp.group("default", cap=3 if which == "group" else None)
    await ramp.queue(10)
    first, second = ramp.dispatcher(**settings), ramp.dispatcher(**settings)
    second._dispatching = LocksAndCountsAtOnce(second._database.sql)
    gate, tick = await held_before_commit(first)
    late = asyncio.create_task(second.tick())
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'"
    await eventually(lambda: conn.fetchval(waiting), 60, "the second dispatcher at the lock")
    gate.open.set()
    await asyncio.gather(tick, late)
    assert await ramp.count_active() == 6


async def test_a_dispatcher_without_caps_takes_no_lock_and_does_not_wait(ramp):
    await ramp.queue(10)
    gate, tick = await held_before_commit(ramp.dispatcher(max_queued_jobs_per_cycle=4, hands=Hands(free=0)))
    locks = (
        "SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database"
        " WHERE locktype = 'advisory' AND datname = current_database()"
    )
    assert await ramp.conn.fetchval(locks) == 0
    other = ramp.dispatcher(max_queued_jobs_per_cycle=4, hands=Hands(free=0))
    assert len((await asyncio.wait_for(other.tick(), 60)).dispatched) == 4
    gate.open.set()
    await tick


async def test_a_group_that_another_counts_does_not_hold_up_the_uncapped(ramp):
    await ramp.group("capped", cap=2)
    await ramp.queue(5, group="capped")
    gate, tick = await held_before_commit(ramp.dispatcher())
    free = await ramp.queue(3)
    cycle = await asyncio.wait_for(ramp.dispatcher().tick(), 60)
    assert [one.entry_id for one in cycle.dispatched] == free
    gate.open.set()
    await tick


async def test_capacity_counts_pending_and_running_alike_and_frees_with_the_end(ramp):
    await ramp.group("default", cap=3)
    await ramp.active(2)
    await ramp.queue(5)
    dispatcher = ramp.dispatcher()
    assert len((await dispatcher.tick()).dispatched) == 1
    assert not (await dispatcher.tick()).dispatched
    await ramp.end_all()
    assert len((await dispatcher.tick()).dispatched) == 3


async def test_a_lowered_cap_kills_nobody_and_lets_nobody_in(ramp):
    await ramp.group("default", cap=4)
    await ramp.queue(10)
    dispatcher = ramp.dispatcher()
    assert len((await dispatcher.tick()).dispatched) == 4
    await ramp.group("default", cap=2)
    assert not (await dispatcher.tick()).dispatched
    assert await ramp.count_active() == 4
    await ramp.end_all()
    assert len((await dispatcher.tick()).dispatched) == 2


async def test_a_full_group_with_ten_thousand_above_hides_nobody(ramp):
    await ramp.group("full", priority=31, cap=1)
    await ramp.active(1, group="full")
    await ramp.queue(10_000, group="full", priority=63)
    other = await ramp.queue(5)
    cycle = await ramp.dispatcher(max_queued_jobs_per_cycle=5, hands=Hands(free=0)).tick()
    assert [one.entry_id for one in cycle.dispatched] == other
    assert [one.reason for one in cycle.skipped] == [Held.GROUP_CAP]


async def test_control_without_a_share_per_group_the_full_one_hides_the_others(ramp, monkeypatch):
    """The obvious version: the first of the queue in order, and the caps afterwards."""
    monkeypatch.setattr(Capacity, "takes", lambda *arguments: arguments[-1])
    await ramp.group("full", priority=31, cap=1)
    await ramp.active(1, group="full")
    await ramp.queue(10_000, group="full", priority=63)
    await ramp.queue(5)
    assert not (await ramp.dispatcher(max_queued_jobs_per_cycle=5, hands=Hands(free=0)).tick()).dispatched


async def test_many_full_groups_above_hide_nobody(ramp):
    for number in range(30):
        await ramp.group(f"full-{number}", priority=31, cap=1)
        await ramp.active(1, group=f"full-{number}")
        await ramp.queue(3, group=f"full-{number}")
    other = await ramp.queue(5)
    cycle = await ramp.dispatcher(max_queued_jobs_per_cycle=5, hands=Hands(free=0)).tick()
    assert [one.entry_id for one in cycle.dispatched] == other


TRAINS = tuple(f"train-{number}" for number in range(60))


async def capped_group_of_many_trains(ramp) -> JobDispatcher:
    """It has room for two, and more lanes than the dispatcher may take entries."""
    await ramp.group("wide", priority=31, cap=2)
    for train in TRAINS:
        await ramp.queue(5, group="wide", train=train)
    return ramp.dispatcher(hands=Hands((*TRAINS, "work"), free=10), max_queued_jobs_per_cycle=10)


async def limited_train_in_many_groups(ramp) -> JobDispatcher:
    for train in TRAINS:
        await ramp.group(train, priority=31)
        await ramp.queue(5, group=train, train="one-by-one")
    hands = Hands(("one-by-one", "work"), free=10, limits=[(("one-by-one",), 2)])
    return ramp.dispatcher(hands=hands, max_queued_jobs_per_cycle=10)


async def many_trains_beside_an_excluded_one(ramp) -> JobDispatcher:
    for train in TRAINS:
        await ramp.queue(5, train=train, priority=63)
    hands = Hands((*TRAINS, "work"), free=10)
    excluded = frozenset({"work"})
    return ramp.dispatcher(
        hands=hands, max_queued_jobs_per_cycle=10, max_active_jobs=2, exclude_from_max_active_jobs=excluded
    )


MANY_LANES = pytest.mark.parametrize(
    "dispatcher_above",
    [capped_group_of_many_trains, limited_train_in_many_groups, many_trains_beside_an_excluded_one],
    ids=lambda above: above.__name__,
)


@MANY_LANES
async def test_many_lanes_that_share_what_little_is_free_hide_nobody(ramp, dispatcher_above):
    """Where their jobs are short there is always a little free, so that nobody else would ever be looked at."""
    dispatcher = await dispatcher_above(ramp)
    other = await ramp.queue(5)
    cycle = await dispatcher.tick()
    assert [one.entry_id in other for one in cycle.dispatched] == [False] * 2 + [True] * 5
    skipped = [one.candidate.id for one in cycle.skipped]
    assert len(skipped) == len(set(skipped)) > 0


@MANY_LANES
async def test_control_without_a_second_look_they_hide_the_others(ramp, dispatcher_above, monkeypatch):
    async def as_if_it_were_all(*arguments, **more):
        return (await load_queued_jobs(*arguments, **more))._replace(cut=False)

    monkeypatch.setattr("interlock.dispatch.select.load_queued_jobs", as_if_it_were_all)
    dispatcher = await dispatcher_above(ramp)
    other = await ramp.queue(5)
    assert not any(one.entry_id in other for one in (await dispatcher.tick()).dispatched)


LOCKS = """
SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
WHERE locktype = 'advisory' AND datname = current_database() AND granted
"""


async def a_group_per_customer(ramp, customers: int, *, full: int = 0) -> None:
    """Each with a cap of one and two entries; the first of them full."""
    await ramp.conn.execute(
        "INSERT INTO interlock.manifest_group (name, max_active_jobs, priority)"
        " SELECT 'customer ' || n, 1, CASE WHEN n <= $2 THEN 9 ELSE 0 END FROM generate_series(1, $1::integer) n",
        customers,
        full,
    )
    for table in (ENTRIES_OF_ALL, *[ACTIVE_IN_THE_URGENT] * bool(full)):
        await ramp.conn.execute(table)


ENTRIES_OF_ALL = """
INSERT INTO interlock.work_queue (kind, train, input, attempt, max_attempts, max_crashes, retry_delay, max_retry_delay,
    retry_backoff, group_id, group_priority, priority, ready)
SELECT 'adhoc', 'work', '{}', 1, 3, 3, '1 s', '1 h', 2, g.id, g.priority, 0, true
FROM interlock.manifest_group g, generate_series(1, 2) WHERE g.max_active_jobs IS NOT NULL
"""
ACTIVE_IN_THE_URGENT = """
INSERT INTO interlock.execution (state, entry_id, first_entry_id, kind, train, input, group_id, attempt, crashes,
    max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff)
SELECT 'pending', 0, 0, 'adhoc', 'work', '{}', g.id, 1, 0, 3, 3, '1 s', '1 h', 2
FROM interlock.manifest_group g WHERE g.max_active_jobs IS NOT NULL AND g.priority = 9
"""


async def locks_for_a_tick(ramp) -> int:
    await a_group_per_customer(ramp, 400)
    gate, tick = await held_before_commit(ramp.dispatcher(hands=Hands(free=10), max_queued_jobs_per_cycle=10))
    locks = await ramp.conn.fetchval(LOCKS)
    gate.open.set()
    assert len((await tick).dispatched) == 10
    return locks


async def test_a_capped_group_per_customer_does_not_fill_the_lock_table_of_the_server(ramp):
    assert await locks_for_a_tick(ramp) == LOCKS_AT_ONCE


async def test_control_locking_all_that_is_capped_takes_a_lock_per_customer(ramp, monkeypatch):
    monkeypatch.setattr("interlock.dispatch.load_dispatch_capacity.LOCKS_AT_ONCE", 1000)
    assert await locks_for_a_tick(ramp) == 400


async def test_of_very_many_capped_groups_the_full_ones_hide_nobody_and_no_cap_is_passed(ramp):
    await a_group_per_customer(ramp, 400, full=250)
    other = await ramp.queue(2)
    dispatchers = [ramp.dispatcher(hands=Hands(free=50), max_queued_jobs_per_cycle=50) for _ in range(3)]
    for _ in range(20):
        await asyncio.gather(*(dispatcher.tick() for dispatcher in dispatchers))
        await ramp.conn.execute("DELETE FROM interlock.background_job")
    most = "SELECT max(n) FROM (SELECT count(*) n FROM interlock.execution WHERE group_id <> 1 GROUP BY group_id) g"
    assert await ramp.conn.fetchval(most) == 1
    assert await ramp.count_active() == 400 + len(other)


async def test_excluded_trains_run_beside_a_full_whole_and_count_in_their_group(ramp):
    await ramp.active(5)
    await ramp.group("small", cap=2)
    await ramp.queue(3, priority=9)
    await ramp.queue(3, train="cleanup")
    await ramp.queue(3, train="cleanup", group="small")
    dispatcher = ramp.dispatcher(
        hands=Hands(["work", "cleanup"]), max_active_jobs=5, exclude_from_max_active_jobs=("cleanup",)
    )
    cycle = await dispatcher.tick()
    assert sorted(one.train for one in cycle.dispatched) == ["cleanup"] * 5
    assert await ramp.count_active("small") == 2
    await ramp.conn.execute("DELETE FROM interlock.execution WHERE train = 'work'")
    assert sum(one.train == "work" for one in (await dispatcher.tick()).dispatched) == 3


async def test_dispatchers_with_caps_of_several_groups_never_deadlock(ramp):
    for number in range(6):
        await ramp.group(f"g{number}", cap=2, priority=number)
        await ramp.queue(20, group=f"g{number}")
    dispatchers = [ramp.dispatcher(max_active_jobs=7 if number % 2 else None) for number in range(5)]
    for _ in range(8):
        await asyncio.gather(*(dispatcher.tick() for dispatcher in dispatchers))
        for number in range(6):
            assert await ramp.count_active(f"g{number}") <= 2
        await ramp.end_all()


async def test_a_stopped_dispatcher_frees_its_locks_within_seconds(ramp, conn):
    """PostgreSQL itself ends the transaction of one that stands still."""
    await ramp.group("default", cap=3)
    await ramp.queue(5)
    stuck = ramp.dispatcher(door=ramp.door(StoreSettings().tick_idle_timeout))
    gate, tick = await held_before_commit(stuck)
    other = ramp.dispatcher()

    async def somebody_dispatches() -> bool:
        return bool((await other.tick()).dispatched)

    await eventually(somebody_dispatches, 20, "the other dispatcher")
    gate.open.set()
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        await tick
    assert await ramp.count_active() == 3
