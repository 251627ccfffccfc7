"""What one dispatcher takes, in which order, and what it leaves."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from interlock import failpoints
from interlock.dispatch.apply_capacity_limits import Held
from interlock.observe.events.work import DispatchTicked, EntryRefused
from interlock.runtime.loop import IMMEDIATELY
from tests.harness.unguarded import take_patterns_off
from tests.harness.waiting import eventually
from tests.integration.dispatch.ramp import Hands

WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


def taken(cycle) -> list[int]:
    return [one.entry_id for one in cycle.dispatched]


async def order_of_jobs(ramp) -> list[int]:
    rows = await ramp.conn.fetch(
        "SELECT entry_id FROM interlock.background_job"
        " ORDER BY group_priority DESC, priority DESC, created_at, entry_id"
    )
    return [row[0] for row in rows]


async def test_an_entry_becomes_an_execution_and_a_job_at_once(ramp):
    [id] = await ramp.queue()  # noqa: A001  the row's own word
    [done] = (await ramp.dispatcher().tick()).dispatched
    entry = await ramp.entry(id)
    assert (entry["state"], entry["execution_id"]) == ("dispatched", done.execution_id)
    assert entry["left_at"] is not None
    execution = await ramp.conn.fetchrow("SELECT * FROM interlock.execution WHERE id = $1", done.execution_id)
    same = ("kind", "train", "input", "manifest_id", "fire_key", "group_id", "attempt", "crashes", "max_attempts")
    assert [execution[name] for name in same] == [entry[name] for name in same]
    assert (execution["state"], execution["entry_id"], execution["first_entry_id"]) == ("pending", id, id)
    assert await order_of_jobs(ramp) == [id]
    assert ramp.local.told == [done]


async def test_a_retry_keeps_its_lineage(ramp):
    first, second = await ramp.queue(2)
    await ramp.conn.execute(
        "UPDATE interlock.work_queue SET first_entry_id = $1, previous_execution_id = 77, attempt = 2 WHERE id = $2",
        first,
        second,
    )
    await ramp.dispatcher().tick()
    row = await ramp.conn.fetchrow("SELECT * FROM interlock.execution WHERE entry_id = $1", second)
    assert (row["first_entry_id"], row["previous_execution_id"], row["attempt"]) == (first, 77, 2)


async def test_the_order_is_group_priority_then_priority_then_age_then_id(ramp):
    await ramp.group("high", priority=20)
    await ramp.group("low", priority=10)
    old, now = datetime(2020, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
    [low_urgent] = await ramp.queue(group="low", priority=63, created_at=old)
    [high_late] = await ramp.queue(group="high", priority=5, created_at=now)
    [high_early] = await ramp.queue(group="high", priority=5, created_at=old)
    [high_urgent] = await ramp.queue(group="high", priority=9, created_at=now)
    twins = await ramp.queue(2, group="low", priority=1, created_at=old)
    expected = [high_urgent, high_early, high_late, low_urgent, *twins]
    dispatcher = ramp.dispatcher(hands=Hands(free=0), max_queued_jobs_per_cycle=1)
    found = []
    for _ in expected:
        found += taken(await dispatcher.tick())
        await ramp.conn.execute("DELETE FROM interlock.background_job")
    assert found == expected


async def test_the_order_holds_across_trains_and_groups_of_one_priority(ramp):
    await ramp.group("other")
    times = [datetime(2020, 1, day, tzinfo=UTC) for day in range(1, 7)]
    places = [("default", "a"), ("other", "b"), ("default", "b"), ("other", "a"), ("default", "a"), ("other", "b")]
    ids = [
        (await ramp.queue(group=group, train=train, created_at=at))[0]
        for at, (group, train) in zip(times, places, strict=True)
    ]
    dispatcher = ramp.dispatcher(hands=Hands(["a", "b"], free=0), max_queued_jobs_per_cycle=2)
    for expected in (ids[:2], ids[2:4], ids[4:]):
        assert sorted(taken(await dispatcher.tick())) == expected
        await ramp.conn.execute("DELETE FROM interlock.background_job")


async def test_a_changed_priority_of_a_group_counts_for_what_is_queued_already(ramp):
    await ramp.group("a", priority=20)
    await ramp.group("b", priority=10)
    [a], [b] = await ramp.queue(group="a"), await ramp.queue(group="b")
    await ramp.group("b", priority=30)
    await ramp.dispatcher().tick()
    assert await order_of_jobs(ramp) == [b, a]


async def test_a_disabled_group_a_paused_train_and_an_unknown_train_are_left_waiting(ramp):
    await ramp.group("off", enabled=False)
    await ramp.conn.execute(
        "INSERT INTO interlock.train (name, aliases, input_schema, paused, last_seen_at)"
        " VALUES ('resting', '{rested}', '{}', true, now())"
    )
    await ramp.queue(group="off")
    for train in ("resting", "rested", "unheard-of"):
        await ramp.queue(train=train)
    [runs] = await ramp.queue()
    hands = Hands(["work", "resting", "rested"])
    assert taken(await ramp.dispatcher(hands=hands).tick()) == [runs]
    await ramp.conn.execute("UPDATE interlock.train SET paused = false")
    assert len(taken(await ramp.dispatcher(hands=hands).tick())) == 2


async def test_the_pause_of_everything_holds_everything(ramp):
    await ramp.conn.execute(
        "INSERT INTO interlock.train (name, aliases, input_schema, paused, last_seen_at)"
        " VALUES ('*', '{}', '{}', true, now())"
    )
    await ramp.queue()
    assert taken(await ramp.dispatcher().tick()) == []


async def test_an_entry_of_a_group_that_is_gone_still_runs(ramp):
    [id] = await ramp.queue()  # noqa: A001  the row's own word
    await ramp.conn.execute("UPDATE interlock.work_queue SET group_id = 4711")
    assert taken(await ramp.dispatcher().tick()) == [id]


async def test_a_future_entry_waits_and_the_dispatcher_sleeps_until_then(ramp):
    [id] = await ramp.queue(delay=1.5)  # noqa: A001  the row's own word
    dispatcher = ramp.dispatcher(job_dispatcher_polling_interval=timedelta(seconds=30))
    cycle = await dispatcher.tick()
    assert not cycle.dispatched
    assert timedelta() < cycle.sleep <= timedelta(seconds=1.5)
    async with asyncio.timeout(60):
        while not cycle.dispatched:
            await asyncio.sleep(cycle.sleep.total_seconds())
            cycle = await dispatcher.tick()
    assert taken(cycle) == [id]


async def test_nothing_is_dispatched_further_ahead_than_the_worker(ramp):
    await ramp.queue(200)
    hands = Hands(free=3)
    dispatcher = ramp.dispatcher(hands=hands, max_queued_jobs_per_cycle=5)
    counts = [len((await dispatcher.tick()).dispatched) for _ in range(3)]
    assert counts == [5, 3, 0]
    await ramp.conn.execute(
        "DELETE FROM interlock.background_job WHERE execution_id IN"
        " (SELECT execution_id FROM interlock.background_job LIMIT 2)"
    )
    assert len((await dispatcher.tick()).dispatched) == 2


async def test_a_limit_of_none_takes_all_that_there_is_room_for(ramp):
    await ramp.queue(250)
    dispatcher = ramp.dispatcher(hands=Hands(free=1000), max_queued_jobs_per_cycle=None)
    assert len((await dispatcher.tick()).dispatched) == 250


async def test_a_limited_train_goes_no_further_than_its_limit_and_holds_up_no_other(ramp):
    await ramp.queue(50, train="solo", priority=63)
    await ramp.queue(5)
    hands = Hands(["work", "solo"], free=10, limits=[(("solo",), 1)])
    dispatcher = ramp.dispatcher(hands=hands, max_queued_jobs_per_cycle=20)
    trains = [one.train for one in (await dispatcher.tick()).dispatched]
    assert (trains.count("solo"), trains.count("work")) == (1, 5)


async def test_a_dispatcher_that_did_something_looks_again_at_once_and_then_rests(ramp):
    await ramp.queue()
    dispatcher = ramp.dispatcher(job_dispatcher_polling_interval=timedelta(seconds=7))
    assert (await dispatcher.tick()).sleep == IMMEDIATELY
    assert (await dispatcher.tick()).sleep == timedelta(seconds=7)


async def test_two_dispatchers_never_take_the_same_entry(ramp):
    await ramp.queue(300)
    dispatchers = [ramp.dispatcher(max_queued_jobs_per_cycle=20) for _ in range(4)]
    for _ in range(10):
        await asyncio.gather(*(dispatcher.tick() for dispatcher in dispatchers))
        await ramp.conn.execute("DELETE FROM interlock.background_job")
    entries = [row[0] for row in await ramp.conn.fetch("SELECT entry_id FROM interlock.execution")]
    assert len(entries) == len(set(entries)) == 300


async def dispatched_by_both(ramp) -> list[int]:
    """The second dispatcher comes before the first has committed; answers the entries of all executions."""
    await ramp.queue()
    met, go = asyncio.Event(), asyncio.Event()

    async def hold_the_first() -> None:
        if not met.is_set():
            met.set()
            await go.wait()

    failpoints.arm("dispatch.before_commit", hold_the_first)
    try:
        first = asyncio.create_task(ramp.dispatcher().tick())
        await asyncio.wait_for(met.wait(), 60)
        second = asyncio.create_task(ramp.dispatcher().tick())

        async def done_or_waits() -> bool:
            return second.done() or bool(await ramp.conn.fetchval(WAITS))

        await eventually(done_or_waits, 60, "the second dispatcher")
        go.set()
        await asyncio.gather(first, second)
    finally:
        failpoints.disarm()
    return [row[0] for row in await ramp.conn.fetch("SELECT entry_id FROM interlock.execution")]


async def test_of_two_that_dispatch_at_once_one_gets_the_entry(ramp):
    assert len(await dispatched_by_both(ramp)) == 1


async def test_control_without_lock_and_state_both_dispatch_it(ramp, monkeypatch):
    state = r"(where|and) w\.state = 'queued'"
    take_patterns_off(monkeypatch, {"dispatch/load": [r"for update[^)]*?skip locked"], "dispatch/hand_over": [state]})
    [one, another] = await dispatched_by_both(ramp)
    assert one == another


async def test_what_another_holds_is_passed_over_and_counted_as_lost(ramp):
    ids = await ramp.queue(3)
    other = await asyncpg.connect(ramp.dsn)
    try:
        async with other.transaction():
            await other.execute("SELECT FROM interlock.work_queue WHERE id = $1 FOR UPDATE", ids[0])
            cycle = await asyncio.wait_for(ramp.dispatcher().tick(), 60)
    finally:
        await other.close()
    assert taken(cycle) == ids[1:]
    assert cycle.lost == 1
    assert ramp.told(DispatchTicked)[0].lost == 1


async def test_an_entry_that_cannot_be_dispatched_fails_alone_with_its_reason(ramp):
    before, [bad], after = await ramp.queue(2), await ramp.queue(train="poison"), await ramp.queue(2)
    await ramp.conn.execute("UPDATE interlock.work_queue SET key = 'k', key_held = true WHERE id = $1", bad)
    await ramp.conn.execute("ALTER TABLE interlock.execution ADD CONSTRAINT no_poison CHECK (train <> 'poison')")
    cycle = await ramp.dispatcher(hands=Hands(["work", "poison"])).tick()
    assert taken(cycle) == [*before, *after]
    assert cycle.refused == 1
    entry = await ramp.entry(bad)
    assert (entry["state"], entry["key_held"]) == ("failed", False)
    assert "no_poison" in entry["failure"]
    [told] = ramp.told(EntryRefused)
    assert told.entry_id == bad


async def test_a_tick_that_breaks_dispatches_nothing(ramp):
    await ramp.queue(3)

    class Stop(Exception):
        pass

    async def stop() -> None:
        raise Stop

    from interlock import failpoints

    failpoints.arm("dispatch.before_commit", stop)
    try:
        with pytest.raises(Stop):
            await ramp.dispatcher().tick()
    finally:
        failpoints.disarm()
    assert set((await ramp.states()).values()) == {"queued"}
    assert await ramp.count_active() == 0
    assert not ramp.local.told


async def test_the_reasons_of_those_left_behind_are_named(ramp):
    await ramp.group("a", priority=20, cap=3)
    await ramp.group("b", priority=10, cap=3)
    a, b = await ramp.queue(4, group="a"), await ramp.queue(4, group="b")
    cycle = await ramp.dispatcher(max_active_jobs=5).tick()
    assert taken(cycle) == [*a[:3], *b[:2]]
    assert [(one.candidate.id, one.reason) for one in cycle.skipped] == [
        (a[3], Held.GROUP_CAP),
        (b[2], Held.GLOBAL_CAP),
    ]
