"""Interleavings that break the obvious version, forced by failpoints; each with a control without its guard."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from interlock import failpoints
from interlock.manifests.manager import LONGEST_SLEEP_IN_VAIN, SHORTEST_SLEEP
from interlock.observe.events.manifest import ManifestsLed, ManifestsSkippedCycle
from interlock.store.manifest import Manifests
from interlock.store.sql import Catalog, compile_statement
from tests.harness.waiting import eventually
from tests.integration.manifests.manager.test_passes import manual_successes
from tests.integration.manifests.manager.world import CANCELLED, HOUR

COMPARED = "where m.next_run_at = read.marker\n  and m.xmin::text = read.version"
NO_COMPARE = ("manifest/hold", COMPARED, "where read.marker is not null and read.version is not null")
NO_VERSION = ("manifest/hold", "and m.xmin::text = read.version", "and read.version is not null")
NO_SECOND_LOOK = ("manifest/block", "      not m.enabled\n", "      true\n")
DAILY = "86400000000"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


class Without(Catalog):
    """The statements, with the guards of some taken out."""

    def __init__(self, *changes: tuple[str, str, str]) -> None:
        super().__init__("interlock")
        self._changes = {name: (old, new) for name, old, new in changes}

    def __getitem__(self, name):
        statement = super().__getitem__(name)
        if name not in self._changes:
            return statement
        old, new = self._changes[name]
        assert old in statement.asyncpg, f"{name} has no such guard"
        text = statement.asyncpg.replace(old, new)
        for number, parameter in reversed(list(enumerate(statement.parameters, 1))):
            text = text.replace(f"${number}", f":{parameter}")
        return compile_statement(name, text, self.schema)


@asynccontextmanager
async def paused_at(world, failpoint: str, *without: tuple[str, str, str]):
    """A cycle that stands still at the failpoint while the block runs, and ends when it ends."""
    reached, go = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        reached.set()
        await go.wait()

    manager = world.manager()
    manager._manifests = Manifests(Without(*without))
    failpoints.arm(failpoint, wait)
    cycle = asyncio.create_task(manager.tick())
    try:
        await asyncio.wait_for(reached.wait(), 60)
        failpoints.disarm(failpoint)
        yield cycle
    finally:
        go.set()
        await cycle


async def test_who_does_not_lead_skips_the_cycle_without_waiting(world):
    await world.manifest("m")
    async with paused_at(world, "manifests.loaded"):
        cycle = await asyncio.wait_for(world.tick(), 60)
        assert (cycle.led, cycle.due) == (False, 0)
        assert len(world.of(ManifestsSkippedCycle)) == 1
    assert len(await world.entries()) == 1


async def operator_reschedules(world, manifest: int) -> None:
    await world.conn.execute(
        "UPDATE interlock.manifest SET planned_at = $2, next_run_at = $2 WHERE id = $1", manifest, world.now + 5 * HOUR
    )


async def test_a_marker_that_was_set_during_the_tick_survives(world):
    manifest = await world.manifest("m")
    async with paused_at(world, "manifests.before_create"):
        await operator_reschedules(world, manifest)
    row = await world.row(manifest)
    assert row["next_run_at"] == row["planned_at"] == world.now + 5 * HOUR
    assert await world.entries(manifest) == []


async def test_control_without_the_compare_and_set_the_marker_is_lost(world):
    manifest = await world.manifest("m")
    async with paused_at(world, "manifests.before_create", NO_COMPARE):
        await operator_reschedules(world, manifest)
    row = await world.row(manifest)
    assert (row["next_run_at"], row["planned_at"]) == (None, world.now + HOUR)


async def edited_during_the_tick(world, *without: tuple[str, str, str]):
    """Code now says daily, while the fire that is due stays where it is; answers the plan after that fire."""
    manifest = await world.manifest("m")
    async with paused_at(world, "manifests.before_create", *without):
        await world.conn.execute(
            "UPDATE interlock.manifest SET schedule = jsonb_set(schedule, '{interval_us}', $1)", DAILY
        )
    await world.tick()
    assert len(await world.entries(manifest)) == 1
    return (await world.row(manifest))["planned_at"]


async def test_a_schedule_that_is_edited_during_the_tick_makes_the_next_plan(world):
    assert await edited_during_the_tick(world) == world.now + 24 * HOUR


async def test_control_with_the_marker_alone_compared_the_edit_comes_a_fire_too_late(world):
    assert await edited_during_the_tick(world, NO_VERSION) == world.now + HOUR


async def test_what_somebody_holds_is_looked_at_ever_more_seldom_until_it_is_let_go(world):
    """A cycle every 20 ms for as long as a transaction of yours is open would be load without any use."""
    manager, held = world.manager(), await world.manifest("held")
    ahead = timedelta(milliseconds=700)
    await world.manifest("ahead", planned_at=world.now + ahead)
    async with world.conn.transaction():
        await world.conn.execute("SELECT 1 FROM interlock.manifest WHERE id = $1 FOR UPDATE", held)
        sleeps = [(await manager.tick()).sleep for _ in range(8)]
    assert sleeps == [min(SHORTEST_SLEEP * 2**number, ahead) for number in range(8)]
    assert (await manager.tick()).queued == 1
    world.clock.advance(HOUR)
    async with world.conn.transaction():
        await world.conn.execute("SELECT 1 FROM interlock.manifest FOR UPDATE")
        sleeps = [(await manager.tick()).sleep for _ in range(8)]
    assert (sleeps[0], sleeps[-1]) == (SHORTEST_SLEEP, LONGEST_SLEEP_IN_VAIN)


async def woken_while_running(world):
    """A child that runs, and is woken by another success of its parent."""
    parent = await world.manifest("parent", planned_at=None)
    child = await world.dependent("child", parent)
    await manual_successes(world, parent)
    await world.tick()
    [entry] = await world.entries(child)
    running = await world.start(entry["id"])
    await manual_successes(world, parent)
    return child, running


async def test_a_run_that_ends_between_load_and_write_keeps_its_marker_though_the_value_is_the_same(world):
    child, running = await woken_while_running(world)
    async with paused_at(world, "manifests.before_create") as cycle:
        await world.end(running, CANCELLED)
    assert (await world.row(child))["next_run_at"] is not None
    assert (await cycle).sleep == SHORTEST_SLEEP  # nobody else wakes the manager: the end found the marker set
    assert (await world.tick()).queued == 1


async def test_control_without_the_second_look_that_run_is_lost(world):
    child, running = await woken_while_running(world)
    async with paused_at(world, "manifests.before_create", NO_SECOND_LOOK):
        await world.end(running, CANCELLED)
    assert (await world.row(child))["next_run_at"] is None
    assert (await world.tick()).queued == 0


async def succeed_again_during_the_tick(world, *without: tuple[str, str, str]) -> bool:
    """Answers whether a run was queued for the last success, once everything that is due was queued and has run."""
    parent = await world.manifest("parent", planned_at=None)
    child = await world.dependent("child", parent)
    await manual_successes(world, parent)
    async with paused_at(world, "manifests.before_create", *without):
        [last] = await manual_successes(world, parent)
    while (await world.tick()).due:
        pass
    await world.run_next(child)
    await world.tick()
    return str(last) in {entry["fire_key"] for entry in await world.entries(child)}


async def test_a_success_that_comes_while_the_one_before_is_queued_is_not_lost(world):
    assert await succeed_again_during_the_tick(world)


async def test_control_with_the_marker_alone_compared_that_success_is_lost(world):
    """The marker has the same value after both successes: comparing it alone sees no difference."""
    assert not await succeed_again_during_the_tick(world, NO_VERSION)


async def woken_for_nothing(world, *without: tuple[str, str, str]) -> int:
    parent = await world.manifest("parent", planned_at=None)
    child = await world.dependent("child", parent, planned_at=world.now)
    async with paused_at(world, "manifests.before_create", *without):
        await manual_successes(world, parent)
    return child


async def test_a_first_success_during_the_tick_wakes_the_child(world):
    child = await woken_for_nothing(world)
    assert (await world.tick()).queued == 1
    assert len(await world.entries(child)) == 1


async def test_control_with_the_marker_alone_compared_the_first_success_is_lost(world):
    await woken_for_nothing(world, NO_VERSION)
    assert (await world.tick()).queued == 0


async def test_a_manifest_that_somebody_holds_is_left_to_the_next_cycle(world):
    held, free = await world.manifest("held"), await world.manifest("free")
    async with world.conn.transaction():
        await world.conn.execute("SELECT FROM interlock.manifest WHERE id = $1 FOR UPDATE", held)
        cycle = await asyncio.wait_for(world.tick(), 60)
        assert cycle.queued == 1
        assert cycle.sleep < timedelta(seconds=1)
    assert [entry["manifest_id"] for entry in await world.entries()] == [free]
    assert (await world.tick()).queued == 1


async def test_a_settle_waits_for_the_tick_and_then_sets_the_marker(world):
    """The tick holds the manifest; what ends in the meantime finds it blocked no more when the tick has committed."""
    child, running = await woken_while_running(world)
    async with paused_at(world, "manifests.held"):
        settling = asyncio.create_task(world.end(running))
        await eventually(lambda: world.conn.fetchval(WAITING))
    await settling
    assert (await world.row(child))["next_run_at"] is not None
    assert (await world.tick()).queued == 1


@pytest.mark.parametrize("failpoint", ["manifests.loaded", "manifests.held", "manifests.before_commit"])
async def test_a_cycle_that_fails_leaves_nothing(world, failpoint):
    manifest = await world.manifest("m")

    async def fail() -> None:
        raise ZeroDivisionError

    failpoints.arm(failpoint, fail)
    with pytest.raises(ZeroDivisionError):
        await world.tick()
    failpoints.disarm()
    assert await world.entries() == []
    assert (await world.row(manifest))["next_run_at"] == world.now
    assert [type(event) for event in world.events] == [ManifestsLed]
    assert (await world.tick()).queued == 1
