"""When more is due than a cycle may queue, every group gets its share, and all get everything in the end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock.manifests import load_manifests, manager
from interlock.runtime.loop import IMMEDIATELY
from tests.integration.manifests.manager.world import HOUR

FILL = """
INSERT INTO interlock.manifest (external_id, origin, train, input, group_id, schedule_kind, schedule, misfire,
                                misfire_threshold, planned_at, next_run_at)
SELECT 'g' || $1::bigint || '-' || n, 'runtime', 't', '{}', $1, 'every', '{"kind": "every", "interval_us": 3600000000}',
       'fire_once', interval '60 s', $3, $3
FROM generate_series(1, $2::int) n
"""


async def fill(world, group: int, count: int) -> None:
    await world.conn.execute(FILL, group, count, world.now)


async def queued_by_group(world) -> dict[int, int]:
    rows = await world.conn.fetch("SELECT group_id, count(*) FROM interlock.work_queue GROUP BY 1")
    return dict(rows)


@pytest.mark.parametrize("count", [1000, pytest.param(5000, marks=pytest.mark.slow)])
async def test_a_small_group_is_served_beside_a_huge_one_in_every_cycle(world, count):
    large, small = await world.group("large"), await world.group("small")
    await fill(world, large, count)
    await fill(world, small, 15)
    cycle = await world.tick()
    assert (cycle.queued, cycle.sleep) == (200, IMMEDIATELY)
    assert await queued_by_group(world) == {large: 185, small: 15}
    for number in range(1, 4):
        await fill_again(world, small, number)
        assert (await world.tick()).queued == 200
        assert await queued_by_group(world) == {large: 185 * (number + 1), small: 15 * (number + 1)}


async def fill_again(world, group: int, number: int) -> None:
    await world.conn.execute(
        "UPDATE interlock.work_queue SET state = 'dispatched', left_at = $2 WHERE group_id = $1 AND state = 'queued'",
        group,
        world.now,
    )
    fire = world.now - timedelta(minutes=number)
    await world.conn.execute(
        "UPDATE interlock.manifest SET planned_at = $2, next_run_at = $2 WHERE group_id = $1", group, fire
    )


@pytest.mark.parametrize(("groups", "limit"), [(60, 40), pytest.param(300, 200, marks=pytest.mark.slow)])
async def test_with_more_groups_than_places_none_starves(world, groups, limit):
    ids = [await world.group(f"g{number}", priority=number % 32) for number in range(groups)]
    for group in ids:
        await fill(world, group, 3)
    cycles = [await world.tick(max_work_queue_entries_per_cycle=limit) for _ in range(2)]
    assert [cycle.queued for cycle in cycles] == [limit, limit]
    served = await queued_by_group(world)
    assert set(served) == set(ids)
    assert max(served.values()) - min(served.values()) <= 1


async def test_what_is_left_goes_to_higher_priorities_first(world):
    low, high, tiny = (
        await world.group("low", priority=1),
        await world.group("high", priority=9),
        await world.group("tiny"),
    )
    await fill(world, low, 50)
    await fill(world, high, 50)
    await fill(world, tiny, 2)
    await world.tick(max_work_queue_entries_per_cycle=30)
    assert await queued_by_group(world) == {low: 10, high: 18, tiny: 2}


async def test_no_limit_queues_all_at_once(world):
    await fill(world, 1, 1000)
    cycle = await world.tick(max_work_queue_entries_per_cycle=None)
    assert (cycle.due, cycle.queued) == (1000, 1000)
    assert cycle.sleep > IMMEDIATELY


@pytest.mark.parametrize("limit", [None, 1000])
async def test_whatever_the_limit_a_cycle_reads_no_more_than_its_transaction_can_bear(world, monkeypatch, limit):
    monkeypatch.setattr(load_manifests, "MOST", 100)
    await fill(world, 1, 250)
    cycles = [await world.tick(max_work_queue_entries_per_cycle=limit) for _ in range(3)]
    assert [cycle.queued for cycle in cycles] == [100, 100, 50]
    assert [cycle.sleep > IMMEDIATELY for cycle in cycles] == [False, False, True]


async def test_schedules_that_are_hard_to_work_out_are_queued_over_several_cycles_and_no_group_waits(
    world, monkeypatch
):
    monkeypatch.setattr(manager, "PASSES_PER_IDLE_TIMEOUT", 10**9)
    other = await world.group("other")
    await fill(world, 1, 3)
    await fill(world, other, 2)
    cycles = []
    for _ in range(5):
        cycles.append(await world.tick(max_work_queue_entries_per_cycle=None))
        world.clock.advance(timedelta(milliseconds=1))
    assert [cycle.queued for cycle in cycles] == [1] * 5
    assert [cycle.sleep > IMMEDIATELY for cycle in cycles] == [False] * 4 + [True]
    in_order = [entry["group_id"] for entry in await world.entries()]
    assert sorted(in_order[:2]) == sorted(in_order[2:4]) == [1, other]


@pytest.mark.parametrize("count", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
async def test_after_an_outage_all_are_queued_and_none_is_read_twice(world, count):
    await fill(world, 1, count)
    world.clock.advance(2 * HOUR)
    read = queued = skipped = 0
    while True:
        cycle = await world.tick()
        read, queued, skipped = read + cycle.due, queued + cycle.queued, skipped + cycle.skipped
        if cycle.sleep > IMMEDIATELY:
            break
    assert queued == count
    assert await world.conn.fetchval("SELECT count(DISTINCT manifest_id) FROM interlock.work_queue") == count
    # A cycle reads twice what it may queue and leaves the second half to the next; nothing that is queued comes again.
    assert read <= 2 * count
    assert skipped == 0


@pytest.mark.parametrize("count", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
async def test_switching_a_group_off_and_on_touches_one_row(world, count):
    group = await world.group("large")
    await fill(world, group, count)
    versions = "SELECT count(*) FROM interlock.manifest WHERE xmin <> $1::text::xid"
    [written] = {row[0] for row in await world.conn.fetch("SELECT DISTINCT xmin::text FROM interlock.manifest")}
    changed = await world.conn.execute("UPDATE interlock.manifest_group SET enabled = false WHERE name = 'large'")
    assert changed == "UPDATE 1"
    assert (await world.tick()).due == 0
    await world.conn.execute("UPDATE interlock.manifest_group SET enabled = true WHERE name = 'large'")
    assert await world.conn.fetchval(versions, written) == 0
    assert (await world.tick()).queued == 200


async def test_a_tick_sleeps_until_the_next_marker_at_most_the_polling_interval(world):
    assert (await world.tick()).sleep == timedelta(seconds=5)
    await world.manifest("soon", planned_at=world.now + timedelta(seconds=2))
    assert (await world.tick()).sleep == timedelta(seconds=2)
    group = await world.group("off", enabled=False)
    await world.manifest("sooner, but switched off", planned_at=world.now + timedelta(seconds=1), group_id=group)
    assert (await world.tick()).sleep == timedelta(seconds=2)
    world.clock.advance(timedelta(seconds=1.999))
    assert (await world.tick()).sleep == timedelta(milliseconds=20)


async def test_a_tick_sleeps_no_longer_than_to_the_plan_of_what_runs_now(world):
    """Its run may end before that, and nobody is told then: nothing is due yet."""
    manifest = await world.manifest("often", schedule={"kind": "every", "interval_us": 1_000_000})
    cycle = await world.tick()
    assert (cycle.queued, cycle.sleep) == (1, timedelta(seconds=1))
    await world.run_next(manifest)
    world.clock.advance(timedelta(seconds=1))
    assert (await world.tick()).queued == 1
