"""What keeps a manifest from being queued: the reason, the marker, and what brings it back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock.observe.events.manifest import DeadLettered, ManifestSkipped
from tests.integration.manifests.manager.world import CANCELLED, COMPLETED, FAILED, HOUR


async def test_what_is_due_is_queued_once_and_the_next_fire_is_planned(world):
    manifest = await world.manifest("m")
    cycle = await world.tick()
    assert (cycle.led, cycle.due, cycle.queued, cycle.skipped) == (True, 1, 1, 0)
    [entry] = await world.entries(manifest)
    assert (entry["kind"], entry["state"], entry["ready"], entry["attempt"]) == ("scheduled", "queued", True, 1)
    assert (entry["train"], entry["input"]) == ("t", '{"of": "m"}')
    assert entry["fire_key"] == "2030-05-06T12:00:00.000000+00:00"
    row = await world.row(manifest)
    assert (row["next_run_at"], row["planned_at"]) == (None, world.now + HOUR)
    assert (await world.tick()).due == 0


async def test_what_is_not_due_is_not_read(world):
    await world.manifest("later", planned_at=world.now + timedelta(microseconds=1))
    assert (await world.tick()).due == 0


async def test_the_end_of_a_run_brings_the_marker_back(world):
    manifest = await world.manifest("m")
    await world.tick()
    await world.run_next(manifest)
    assert (await world.row(manifest))["next_run_at"] == world.now + HOUR
    world.clock.advance(HOUR)
    assert (await world.tick()).queued == 1


async def blocked(world, manifest: int, reason: str) -> None:
    """Somebody in doubt sets the marker: the manager looks once, says why, and clears it; the plan stays."""
    planned_at = (await world.row(manifest))["planned_at"]
    await world.conn.execute("UPDATE interlock.manifest SET next_run_at = $2 WHERE id = $1", manifest, world.now)
    world.events.clear()
    cycle = await world.tick()
    assert (cycle.due, cycle.queued, cycle.skipped) == (1, 0, 1)
    assert [event.reason for event in world.of(ManifestSkipped)] == [reason]
    row = await world.row(manifest)
    assert (row["next_run_at"], row["planned_at"]) == (None, planned_at)


async def test_queued_work_blocks(world):
    manifest = await world.manifest("m")
    await world.tick()
    await blocked(world, manifest, "already_queued")
    assert len(await world.entries(manifest)) == 1


async def test_a_queued_retry_blocks(world):
    manifest = await world.manifest("m")
    await world.tick()
    await world.run_next(manifest, FAILED)
    await blocked(world, manifest, "already_queued")


@pytest.mark.parametrize("pending", [True, False])
async def test_an_active_run_blocks(world, pending):
    manifest = await world.manifest("m")
    await world.tick()
    [entry] = await world.entries(manifest)
    await world.start(entry["id"], pending=pending)
    await blocked(world, manifest, "already_active")


async def test_an_open_dead_letter_blocks_until_it_is_resolved(world):
    manifest = await world.manifest("m", max_attempts=1)
    await world.tick()
    await world.run_next(manifest, FAILED)
    assert len(await world.dead_letters(manifest)) == 1
    world.clock.advance(HOUR)
    await blocked(world, manifest, "dead_letter_open")


async def test_a_disabled_manifest_is_not_queued(world):
    manifest = await world.manifest("m", enabled=False)
    await blocked(world, manifest, "manifest_disabled")


@pytest.mark.parametrize("ending", [COMPLETED, FAILED, None])
async def test_a_manual_run_blocks_nothing(world, ending):
    """Neither while it is queued or active, nor by its failures or its dead letter."""
    manifest = await world.manifest("m", max_attempts=1)
    entry = await world.conn.fetchval(
        "INSERT INTO interlock.work_queue (kind, train, input, manifest_id, attempt, max_attempts, max_crashes,"
        " retry_delay, max_retry_delay, retry_backoff, group_id, group_priority, priority, ready)"
        " VALUES ('manual', 't', '{}', $1, 1, 1, 3, '1 s', '1 s', 1, 1, 0, 0, true) RETURNING id",
        manifest,
    )
    if ending is not None:
        await world.end(await world.start(entry), ending)
    assert (await world.tick()).queued == 1
    [scheduled] = [entry for entry in await world.entries(manifest) if entry["kind"] == "scheduled"]
    assert scheduled["attempt"] == 1


@pytest.mark.parametrize("kind", ["dormant", "manual"])
async def test_what_is_only_run_on_request_is_never_queued(world, kind):
    parent = await world.manifest("parent", planned_at=None)
    schedule = {"kind": kind, "parent": "parent"} if kind == "dormant" else {"kind": kind}
    manifest = await world.manifest("m", schedule=schedule, parent_id=parent if kind == "dormant" else None)
    assert (await world.tick()).queued == 0
    row = await world.row(manifest)
    assert (row["next_run_at"], row["planned_at"]) == (None, None)
    assert world.reasons("m") == [kind]


async def test_a_disabled_group_keeps_its_markers_and_is_served_when_it_is_back(world):
    group = await world.group("off", enabled=False)
    manifest = await world.manifest("m", group_id=group)
    assert (await world.tick()).due == 0
    assert (await world.row(manifest))["next_run_at"] == world.now
    await world.conn.execute("UPDATE interlock.manifest_group SET enabled = true")
    assert (await world.tick()).queued == 1


@pytest.mark.parametrize("paused", ["t", "*", "renamed"])
async def test_a_pause_keeps_the_markers(world, paused):
    await world.conn.execute(
        "INSERT INTO interlock.train (name, aliases, input_schema, paused, last_seen_at)"
        " VALUES ($1, CASE WHEN $1 = 'renamed' THEN '{t}'::text[] ELSE '{}' END, '{}', true, now())",
        paused,
    )
    manifest = await world.manifest("m")
    other = await world.manifest("other", train="another")
    assert (await world.tick()).queued == (0 if paused == "*" else 1)
    assert (await world.row(manifest))["next_run_at"] == world.now
    assert (await world.row(other))["next_run_at"] == (world.now if paused == "*" else None)
    await world.conn.execute("UPDATE interlock.train SET paused = false")
    await world.tick()
    assert len(await world.entries()) == 2


async def test_failures_count_up_and_end_in_one_dead_letter(world):
    manifest = await world.manifest("m", max_attempts=2)
    await world.tick()
    await world.run_next(manifest, FAILED)
    world.clock.advance(HOUR)
    [retry] = await world.entries(manifest, "queued")
    assert retry["attempt"] == 2
    await world.run_next(manifest, FAILED)
    [dead] = await world.dead_letters(manifest)
    assert (dead["reason"], dead["state"], dead["attempts"]) == ("max_attempts", "awaiting_intervention", 2)


async def exhausted_without_dead_letter(world, **columns) -> int:
    """What an older version or a person left behind: the attempts are used up, and nobody was told."""
    manifest = await world.manifest("m", max_attempts=2, **columns)
    await world.tick()
    await world.run_next(manifest, FAILED)
    await world.run_next(manifest, FAILED)
    await world.conn.execute("DELETE FROM interlock.dead_letter")
    return manifest


async def test_a_missing_dead_letter_is_written_now_and_not_when_the_manifest_is_due_again(world):
    manifest = await exhausted_without_dead_letter(world)
    await world.conn.execute("UPDATE interlock.execution SET junction = 'write'")
    cycle = await world.tick()
    assert (cycle.due, cycle.dead_lettered) == (0, 1)
    [dead] = await world.dead_letters(manifest)
    assert (dead["reason"], dead["attempts"], dead["external_id"]) == ("max_attempts", 2, "m")
    assert dead["junction"] == "write"
    assert [event.manifest for event in world.of(DeadLettered)] == ["m"]
    assert (await world.tick()).dead_lettered == 0
    assert len(await world.dead_letters(manifest)) == 1


async def test_what_was_just_dead_lettered_is_not_queued_in_the_same_cycle(world):
    manifest = await exhausted_without_dead_letter(world)
    await world.conn.execute("UPDATE interlock.manifest SET next_run_at = $1", world.now)
    cycle = await world.tick()
    assert (cycle.due, cycle.queued, cycle.dead_lettered) == (1, 0, 1)
    assert len(await world.entries(manifest, "queued")) == 0
    assert (await world.row(manifest))["next_run_at"] is None


async def test_attempts_that_were_lowered_below_the_failures_make_a_dead_letter_when_due(world):
    manifest = await world.manifest("m", max_attempts=5)
    await world.tick()
    for _ in range(3):
        await world.run_next(manifest, FAILED)
    await world.conn.execute("DELETE FROM interlock.work_queue WHERE state = 'queued'")
    await world.conn.execute("UPDATE interlock.manifest SET max_attempts = 2, next_run_at = planned_at")
    assert (await world.tick()).dead_lettered == 0
    world.clock.advance(HOUR)
    cycle = await world.tick()
    assert (cycle.queued, cycle.dead_lettered) == (0, 1)


@pytest.mark.parametrize(("declared", "dead_lettered"), [({}, 0), ({"max_attempts": 2}, 1)])
async def test_attempts_left_to_the_settings_are_those_of_the_work_and_not_of_the_server_that_leads(
    world, declared, dead_lettered
):
    """Two apps with one schema may differ; what was queued for ten attempts is not over after two."""
    manifest = await world.manifest("m")
    await world.tick(max_attempts=10)
    for _ in range(2):
        await world.run_next(manifest, FAILED)
    await world.conn.execute("DELETE FROM interlock.work_queue WHERE state = 'queued'")
    world.clock.advance(HOUR)
    await world.conn.execute("UPDATE interlock.manifest SET next_run_at = planned_at")
    if declared:
        await world.conn.execute("UPDATE interlock.manifest SET max_attempts = $1", declared["max_attempts"])
    cycle = await world.tick(max_attempts=2)
    assert (cycle.queued, cycle.dead_lettered) == (1 - dead_lettered, dead_lettered)


@pytest.mark.parametrize("column", ["last_success_at", "last_resolved_at"])
async def test_one_failure_after_a_used_up_count_was_dealt_with_makes_no_dead_letter(world, column):
    """Its retry was cancelled, so nothing is queued; the failures of this morning have had their dead letter."""
    manifest = await exhausted_without_dead_letter(world)
    await world.conn.execute(
        f"UPDATE interlock.manifest SET {column} = $1, next_run_at = planned_at",
        world.now + timedelta(seconds=1),
    )
    world.clock.advance(HOUR)
    assert (await world.tick()).queued == 1
    await world.run_next(manifest, FAILED)
    await world.conn.execute(
        "UPDATE interlock.work_queue SET state = 'cancelled', left_at = now() WHERE state = 'queued'"
    )
    assert (await world.tick()).dead_lettered == 0
    assert await world.dead_letters(manifest) == []


@pytest.mark.parametrize("reset", ["success", "resolution", None])
async def test_the_count_of_failures_starts_anew_after_a_success_and_after_a_resolution(world, reset):
    """Three failures in three years are not three in a row."""
    manifest = await world.manifest("m", max_attempts=5)
    await world.tick()
    for _ in range(2):
        await world.run_next(manifest, FAILED)
        world.clock.advance(timedelta(minutes=1))
    if reset == "success":
        await world.run_next(manifest, COMPLETED)
    else:
        [entry] = await world.entries(manifest, "queued")
        await world.end(await world.start(entry["id"]), CANCELLED)
    if reset == "resolution":
        await world.conn.execute("UPDATE interlock.manifest SET last_resolved_at = $1", world.now)
    world.clock.advance(HOUR)
    assert (await world.tick()).queued == 1
    [entry] = await world.entries(manifest, "queued")
    assert entry["attempt"] == (1 if reset else 3)


@pytest.mark.parametrize(("failure", "counts"), [("error", True), ("timeout", True), ("worker_lost", False)])
async def test_only_failures_of_the_train_count(world, failure, counts):
    manifest = await world.manifest("m", max_attempts=5)
    await world.tick()
    await world.run_next(manifest, FAILED, failure=failure)
    await world.conn.execute("DELETE FROM interlock.work_queue WHERE state = 'queued'")
    await world.conn.execute("UPDATE interlock.manifest SET next_run_at = planned_at")
    world.clock.advance(HOUR)
    await world.tick()
    [entry] = await world.entries(manifest, "queued")
    assert entry["attempt"] == (2 if counts else 1)
