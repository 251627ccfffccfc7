"""The sweep repairs markers, and in a healthy system it has nothing to repair."""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock.observe.events.manifest import MarkersRepaired
from tests.integration.manifests.manager.test_passes import manual_successes
from tests.integration.manifests.manager.world import CANCELLED, COMPLETED, FAILED, HOUR

MINUTE = timedelta(minutes=1)


async def test_a_plan_without_a_marker_and_without_a_reason_gets_its_marker(world):
    manifest = await world.manifest("m", planned_at=world.now + HOUR)
    await world.conn.execute("UPDATE interlock.manifest SET next_run_at = NULL")
    assert await world.sweep.tick() == MINUTE
    assert (await world.row(manifest))["next_run_at"] == world.now + HOUR
    assert world.sweep.repaired == 1
    assert [event.count for event in world.of(MarkersRepaired)] == [1]
    await world.sweep.tick()
    assert world.sweep.repaired == 1


async def test_a_success_that_nobody_was_woken_for_is_found(world):
    parent = await world.manifest("parent", planned_at=None)
    child = await world.dependent("child", parent)
    await manual_successes(world, parent)
    await world.conn.execute("UPDATE interlock.manifest SET next_run_at = NULL, planned_at = NULL")
    await world.sweep.tick()
    assert world.sweep.repaired == 1
    assert (await world.tick()).queued == 1
    assert len(await world.entries(child)) == 1


@pytest.mark.parametrize("blocked_by", ["disabled", "queued", "active", "dead letter"])
async def test_what_is_blocked_is_left_alone(world, blocked_by):
    manifest = await world.manifest("m", max_attempts=1)
    await world.tick()
    if blocked_by == "disabled":
        await world.run_next(manifest)
        await world.conn.execute("UPDATE interlock.manifest SET enabled = false, next_run_at = NULL")
    elif blocked_by == "active":
        [entry] = await world.entries(manifest)
        await world.start(entry["id"])
    elif blocked_by == "dead letter":
        await world.run_next(manifest, FAILED)
    await world.sweep.tick()
    assert world.sweep.repaired == 0
    assert (await world.row(manifest))["next_run_at"] is None


async def test_a_healthy_system_has_nothing_to_repair(world):
    """Every way in which a run can go, again and again, with a sweep after each step."""
    parents = [await world.manifest(f"parent-{number}", max_attempts=2) for number in range(4)]
    children = [await world.dependent(f"child-{parent}", parent) for parent in parents]
    endings = [COMPLETED, FAILED, CANCELLED, COMPLETED]
    for round_ in range(6):
        await world.tick()
        await world.sweep.tick()
        for number, manifest in enumerate([*parents, *children]):
            if await world.entries(manifest, "queued"):
                await world.run_next(manifest, endings[(number + round_) % 4])
                await world.sweep.tick()
        world.clock.advance(HOUR)
    assert len(await world.entries()) > 20
    assert world.sweep.repaired == 0
    assert world.of(MarkersRepaired) == []
