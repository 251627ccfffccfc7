"""The two passes: what a schedule makes due, and what a success of a parent makes due."""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock.observe.events.manifest import MisfireSkipped
from interlock.trains.options import Backoff, TrainOptions
from tests.integration.manifests.manager.world import COMPLETED, FAILED, HOUR

MINUTE = timedelta(minutes=1)
OFF_AT_NOON = '[{"kind": "window", "start": "11:30:00", "end": "12:30:00"}]'


async def test_an_outage_of_hours_costs_one_fire_and_the_grid_stays(world):
    manifest = await world.manifest("m")
    world.clock.advance(3 * HOUR + 10 * MINUTE)
    assert (await world.tick()).queued == 1
    [entry] = await world.entries(manifest)
    assert entry["fire_key"] == "2030-05-06T12:00:00.000000+00:00"
    assert (await world.row(manifest))["planned_at"] == world.now + 50 * MINUTE


@pytest.mark.parametrize(("late", "fires"), [(60, True), (61, False)])
async def test_a_fire_later_than_the_threshold_is_skipped_where_declared_so(world, late, fires):
    manifest = await world.manifest("m", misfire="skip")
    planned_at = world.now
    world.clock.advance(timedelta(seconds=late))
    cycle = await world.tick()
    assert (cycle.queued, cycle.skipped) == ((1, 0) if fires else (0, 1))
    row = await world.row(manifest)
    assert row["planned_at"] == planned_at + HOUR
    assert row["next_run_at"] == (None if fires else planned_at + HOUR)
    assert [event.planned_at for event in world.of(MisfireSkipped)] == ([] if fires else [planned_at])


async def test_an_exclusion_skips_the_fire_and_is_no_misfire(world):
    manifest = await world.manifest("m", exclusions=OFF_AT_NOON)
    planned_at = world.now
    assert (await world.tick()).queued == 0
    row = await world.row(manifest)
    assert (row["planned_at"], row["next_run_at"]) == (planned_at + HOUR, planned_at + HOUR)
    assert world.reasons("m") == ["excluded"]
    assert world.of(MisfireSkipped) == []


async def test_a_single_time_fires_once_and_is_never_planned_again(world):
    manifest = await world.manifest("m", schedule={"kind": "once", "at": "2030-05-06T12:00:00+00:00"})
    assert (await world.tick()).queued == 1
    row = await world.row(manifest)
    assert (row["planned_at"], row["next_run_at"]) == (None, None)
    await world.run_next(manifest)
    world.clock.advance(1000 * HOUR)
    assert (await world.tick()).due == 0
    assert await world.sweep.tick() == MINUTE
    assert world.sweep.repaired == 0


async def test_variance_delays_the_next_fire_and_does_not_move_the_grid(world):
    manifest = await world.manifest("m", variance=10 * MINUTE)
    noon = world.now
    await world.tick()
    row = await world.row(manifest)
    assert (row["planned_at"], row["planned_offset"]) == (noon + HOUR + 5 * MINUTE, 5 * MINUTE)
    await world.run_next(manifest)
    world.clock.advance(HOUR + 4 * MINUTE)
    assert (await world.tick()).due == 0
    world.clock.advance(MINUTE)
    assert (await world.tick()).queued == 1
    [entry] = await world.entries(manifest, "queued")
    assert entry["fire_key"] == "2030-05-06T13:00:00.000000+00:00"


async def test_a_marker_before_the_plan_fires_nothing_early(world):
    manifest = await world.manifest("m", planned_at=world.now + HOUR)
    await world.conn.execute("UPDATE interlock.manifest SET next_run_at = $1", world.now)
    cycle = await world.tick()
    assert (cycle.due, cycle.queued) == (1, 0)
    assert (await world.row(manifest))["next_run_at"] == world.now + HOUR


async def test_a_success_of_the_parent_queues_its_dependents_once(world):
    parent = await world.manifest("parent", planned_at=None)
    child = await world.dependent("child", parent)
    [execution] = await manual_successes(world, parent)
    assert (await world.tick()).queued == 1
    [entry] = await world.entries(child)
    assert (entry["kind"], entry["fire_key"]) == ("scheduled", str(execution))
    row = await world.row(child)
    assert (row["consumed_execution_id"], row["planned_at"], row["next_run_at"]) == (execution, None, None)
    await world.run_next(child)
    assert (await world.tick()).due == 0


async def manual_successes(world, manifest: int, count: int = 1) -> list[int]:
    """Runs that a person triggered: their success counts for dependents, too."""
    executions = []
    for _ in range(count):
        entry = await world.conn.fetchval(
            "INSERT INTO interlock.work_queue (kind, train, input, manifest_id, attempt, max_attempts, max_crashes,"
            " retry_delay, max_retry_delay, retry_backoff, group_id, group_priority, priority, ready)"
            " VALUES ('manual', 't', '{}', $1, 1, 1, 3, '1 s', '1 s', 1, 1, 0, 0, true) RETURNING id",
            manifest,
        )
        execution = await world.start(entry)
        await world.end(execution)
        executions.append(execution["id"])
    return executions


async def test_successes_while_the_child_runs_make_one_more_run_with_the_last(world):
    parent = await world.manifest("parent", planned_at=None)
    child = await world.dependent("child", parent)
    await manual_successes(world, parent)
    await world.tick()
    [entry] = await world.entries(child)
    running = await world.start(entry["id"])
    last = (await manual_successes(world, parent, 3))[-1]
    assert (await world.tick()).queued == 0
    assert world.reasons("child") == ["already_active"]
    await world.end(running)
    assert (await world.tick()).queued == 1
    [entry] = await world.entries(child, "queued")
    assert entry["fire_key"] == str(last)
    await world.run_next(child)
    assert (await world.tick()).due == 0


async def test_a_failure_of_the_parent_queues_nothing(world):
    parent = await world.manifest("parent")
    child = await world.dependent("child", parent)
    await world.tick()
    await world.run_next(parent, FAILED)
    await world.tick()
    assert await world.entries(child) == []


@pytest.mark.parametrize(
    ("parent_columns", "reason"),
    [
        ({}, "parent_not_succeeded"),
        ({"last_success_execution_id": 12345}, "parent_success_stale"),
        ({"last_success_execution_id": 7}, "parent_success_consumed"),
    ],
)
async def test_a_dependent_that_is_woken_for_nothing_lies_down_again(world, parent_columns, reason):
    """A success of which no run is on record is stale: it may have been restored or truncated away."""
    parent = await world.manifest("parent", planned_at=None, **parent_columns)
    child = await world.dependent("child", parent, planned_at=world.now, consumed_execution_id=7)
    cycle = await world.tick()
    assert (cycle.due, cycle.queued) == (1, 0)
    assert world.reasons("child") == [reason]
    row = await world.row(child)
    assert (row["planned_at"], row["next_run_at"]) == (None, None)
    await world.sweep.tick()
    assert world.sweep.repaired == 0


async def test_a_dependent_with_exclusions_waits_for_their_end_and_then_runs(world):
    parent = await world.manifest("parent", planned_at=None)
    child = await world.dependent("child", parent, exclusions=OFF_AT_NOON)
    await manual_successes(world, parent)
    assert (await world.tick()).queued == 0
    assert (await world.row(child))["next_run_at"] == world.now + 30 * MINUTE
    world.clock.advance(30 * MINUTE)
    assert (await world.tick()).queued == 1


async def test_a_chain_of_manifests_runs_link_by_link(world):
    first = await world.manifest("first")
    second = await world.dependent("second", first)
    third = await world.dependent("third", second)
    for manifest in (first, second, third):
        assert (await world.tick()).queued == 1
        await world.run_next(manifest, COMPLETED)
    assert (await world.tick()).due == 0
    assert len(await world.entries()) == 3


@pytest.mark.parametrize(
    ("manifest", "train", "expected"),
    [
        ({}, None, (0, 3, timedelta(minutes=5), 2.0, timedelta(hours=1), timedelta(minutes=20))),
        (
            {},
            TrainOptions(max_attempts=7, priority=9, timeout=MINUTE, retry=Backoff(MINUTE, 3.0, 9 * MINUTE)),
            (9, 7, MINUTE, 3.0, 9 * MINUTE, MINUTE),
        ),
        (
            {"priority": 11, "max_attempts": 1, "retry_delay": 2 * MINUTE, "retry_backoff": 1.0, "timeout": HOUR},
            TrainOptions(max_attempts=7, priority=9, timeout=MINUTE, retry=Backoff(MINUTE, 3.0, 9 * MINUTE)),
            (11, 1, 2 * MINUTE, 1.0, 9 * MINUTE, HOUR),
        ),
    ],
)
async def test_the_policy_is_the_manifests_else_the_trains_else_that_of_the_settings(world, manifest, train, expected):
    id_ = await world.manifest("m", **manifest)
    await world.manager(lambda _: train).tick()
    [entry] = await world.entries(id_)
    columns = ("priority", "max_attempts", "retry_delay", "retry_backoff", "max_retry_delay", "timeout")
    assert tuple(entry[column] for column in columns) == expected


async def test_without_a_wait_between_attempts_in_the_settings_manifests_are_queued_all_the_same(world):
    id_ = await world.manifest("m")
    assert (await world.tick(retry_delay=timedelta(0))).queued == 1
    [entry] = await world.entries(id_)
    assert entry["retry_delay"] == timedelta(0)


@pytest.mark.parametrize(("group", "boost", "expected"), [(5, 16, 21), (31, 60, 63), (0, 0, 0)])
async def test_a_dependent_is_boosted_above_its_group(world, group, boost, expected):
    parent = await world.manifest("parent", planned_at=None)
    child = await world.dependent("child", parent, group_id=await world.group("g", priority=group))
    await manual_successes(world, parent)
    await world.tick(dependent_priority_boost=boost)
    [entry] = await world.entries(child)
    assert (entry["group_priority"], entry["priority"]) == (group, expected)
