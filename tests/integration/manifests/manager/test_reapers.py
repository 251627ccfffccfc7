"""Junctions 2 to 4: what ran, or waited, for too long."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from interlock.manifests.cancel_timed_out_jobs import GRACE
from interlock.observe.events.manifest import StaleReaped, TimeoutRequested

MINUTE = timedelta(minutes=1)
STALE = timedelta(minutes=61)


async def running(world, *, pending: bool = False, max_attempts: int = 2, **columns):
    """One execution of a manifest that is not due any more."""
    manifest = await world.manifest("m", max_attempts=max_attempts)
    await world.tick()
    [entry] = await world.entries(manifest)
    return manifest, await world.start(entry["id"], pending=pending, **columns)


async def state(world, execution) -> tuple[str, str | None]:
    row = await world.conn.fetchrow("SELECT state, failure FROM interlock.execution WHERE id = $1", execution["id"])
    return row["state"], row["failure"]


async def test_what_runs_past_its_timeout_is_asked_to_stop_and_ended_after_the_grace(world):
    manifest, execution = await running(world, timeout=MINUTE, server_id=await world.server())
    world.clock.advance(MINUTE)
    cycle = await world.tick()
    assert (cycle.timeouts_requested, cycle.timed_out) == (1, 0)
    assert [event.execution_id for event in world.of(TimeoutRequested)] == [execution["id"]]
    row = await world.conn.fetchrow("SELECT * FROM interlock.execution")
    assert (row["state"], row["cancel_cause"], row["cancel_requested_at"]) == ("in_progress", "timeout", world.now)
    world.clock.advance(GRACE - timedelta(microseconds=1))
    cycle = await world.tick()
    assert (cycle.timeouts_requested, cycle.timed_out) == (0, 0)
    world.clock.advance(timedelta(microseconds=1))
    assert (await world.tick()).timed_out == 1
    assert await state(world, execution) == ("failed", "timeout")
    [retry] = await world.entries(manifest, "queued")
    assert retry["attempt"] == 2


async def test_a_worker_that_comes_back_after_the_grace_settles_nothing(world):
    _, execution = await running(world, timeout=MINUTE)
    world.clock.advance(MINUTE)
    await world.tick()
    world.clock.advance(GRACE)
    await world.tick()
    assert await world.end(execution) == []
    assert await state(world, execution) == ("failed", "timeout")


async def test_the_holders_are_told_in_the_notice_of_the_commit(world):
    told: asyncio.Queue[str] = asyncio.Queue()
    await world.conn.add_listener("interlock_interlock", lambda *message: told.put_nowait(message[-1]))
    _, execution = await running(world, timeout=MINUTE)
    world.clock.advance(MINUTE)
    await world.tick()
    wanted = f"cancel:{execution['id']}"
    while await asyncio.wait_for(told.get(), 60) != wanted:
        pass


async def test_what_a_person_stopped_ends_cancelled_and_is_not_tried_again(world):
    manifest, execution = await running(world, timeout=MINUTE)
    await world.conn.execute(
        "UPDATE interlock.execution SET cancel_requested_at = $1, cancel_cause = 'person', cancel_actor = 'ada'",
        world.now,
    )
    world.clock.advance(MINUTE + GRACE - timedelta(microseconds=1))
    assert (await world.tick()).timed_out == 0
    world.clock.advance(timedelta(microseconds=1))
    assert (await world.tick()).timed_out == 1
    assert await state(world, execution) == ("cancelled", None)
    assert await world.entries(manifest, "queued") == []


async def test_the_last_timeout_ends_in_a_dead_letter(world):
    manifest, _ = await running(world, timeout=MINUTE, max_attempts=1)
    world.clock.advance(MINUTE)
    await world.tick()
    world.clock.advance(GRACE)
    cycle = await world.tick()
    assert (cycle.timed_out, cycle.dead_lettered) == (1, 1)
    assert len(await world.dead_letters(manifest)) == 1


async def test_what_nobody_took_up_fails_and_is_tried_again(world):
    manifest, execution = await running(world, pending=True, submitter="http")
    world.clock.advance(timedelta(minutes=20) - timedelta(microseconds=1))
    assert (await world.tick()).reaped_pending == 0
    world.clock.advance(timedelta(microseconds=1))
    assert (await world.tick()).reaped_pending == 1
    assert await state(world, execution) == ("failed", "stale_pending")
    assert [entry["attempt"] for entry in await world.entries(manifest, "queued")] == [2]
    assert [event.state for event in world.of(StaleReaped)] == ["pending"]


async def test_a_backlog_is_not_stale(world):
    """A job that a worker may still claim waits for a slot, for however long."""
    _, execution = await running(world, pending=True)
    await world.conn.execute(
        "INSERT INTO interlock.background_job (execution_id, train, group_priority, priority, created_at, entry_id)"
        " VALUES ($1, 't', 0, 0, now(), $2)",
        execution["id"],
        execution["entry_id"],
    )
    world.clock.advance(timedelta(days=3))
    assert (await world.tick()).reaped_pending == 0
    await world.conn.execute("DELETE FROM interlock.background_job")
    assert (await world.tick()).reaped_pending == 1


@pytest.mark.parametrize("pending", [True, False])
@pytest.mark.parametrize("server", ["alive", "draining", "lost", "gone"])
async def test_a_living_server_beats_the_clock(world, server, pending):
    """Judged by its state: after an outage every lease looks expired, and nobody must be reaped for that."""
    expired = timedelta(seconds=-30)
    _, execution = await running(
        world, pending=pending, server_id=await world.server(server, expired), timeout=3 * STALE
    )
    world.clock.advance(STALE)
    cycle = await world.tick()
    reaped = cycle.reaped_pending if pending else cycle.reaped_in_progress
    assert reaped == (server in ("lost", "gone"))
    failure = "stale_pending" if pending else "stale_in_progress"
    expected = ("failed", failure) if reaped else (execution["state"], None)
    assert await state(world, execution) == expected


async def test_ad_hoc_work_is_reaped_and_retried_too(world):
    entry = await world.conn.fetchval(
        "INSERT INTO interlock.work_queue (kind, train, input, attempt, max_attempts, max_crashes, retry_delay,"
        " max_retry_delay, retry_backoff, group_id, group_priority, priority, ready, key, key_held)"
        " VALUES ('adhoc', 't', '{}', 1, 3, 3, '1 s', '1 s', 1, 1, 0, 0, true, 'k', true) RETURNING id"
    )
    await world.start(entry)
    world.clock.advance(STALE)
    assert (await world.tick()).reaped_in_progress == 1
    [retry] = await world.entries(state="queued")
    assert (retry["attempt"], retry["key"], retry["key_held"]) == (2, "k", True)


@pytest.mark.parametrize("late", ["stale", "past its timeout"])
@pytest.mark.parametrize(
    ("held", "column"), [("execution", "id"), ("work_queue", "entry_id"), ("manifest", "manifest_id")]
)
async def test_a_reaper_waits_for_nobody(world, held, column, late):
    """A worker that settles at this moment holds its rows; the cycle passes over them, in whatever order it locks."""

    def closed(cycle) -> int:
        return cycle.reaped_in_progress + cycle.timed_out

    lives = late == "past its timeout"
    what = {"timeout": MINUTE, "server_id": await world.server()} if lives else {"timeout": 3 * STALE}
    _, execution = await running(world, **what)
    await world.conn.execute("UPDATE interlock.work_queue SET key = 'k', key_held = true")
    world.clock.advance(STALE)
    if lives:
        assert (await world.tick()).timeouts_requested == 1
    world.clock.advance(GRACE)
    async with world.conn.transaction():
        await world.conn.execute(f"SELECT FROM interlock.{held} WHERE id = $1 FOR UPDATE", execution[column])
        cycle = await asyncio.wait_for(world.tick(), 60)
        assert (cycle.led, closed(cycle)) == (True, 0)
    assert closed(await world.tick()) == 1
