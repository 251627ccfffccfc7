"""What people do while servers work: cancel, trigger, enable, disable, pause."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from interlock import failpoints
from interlock.errors import UnknownGroup, UnknownManifest, UnknownWork
from interlock.model.lifecycle import ExecutionState
from interlock.model.outcome import Ending
from interlock.store.cancellation import Cancellations


@pytest.fixture
async def app(works):
    yield works.app
    await works.app.aclose()


async def test_a_cancel_ends_what_waits_and_asks_what_runs(app, yard):
    manifest = await yard.manifest("m")
    waiting = await yard.dispatch(kind="manual", manifest=manifest)
    running = await yard.dispatch(kind="scheduled", manifest=manifest, fire_key="f")
    await yard.claimed(running)
    queued = await app.atrigger("m")
    cancelled = await app.acancel("m", actor="ada")
    assert (cancelled.entries, cancelled.ended, cancelled.asked) == ([queued], [waiting], [running])
    assert (await yard.states()) == {waiting: "cancelled", running: "in_progress"}
    assert (await yard.execution(running))["cancel_actor"] == "ada"
    assert await yard.conn.fetchval("SELECT count(*) FROM interlock.background_job") == 0


async def test_a_cancelled_entry_gives_its_manifest_the_marker_back_and_frees_its_key(app, yard):
    manifest = await yard.manifest("m")
    run = await yard.dispatch(kind="scheduled", manifest=manifest, fire_key="f", key="k")
    await app.acancel("m")
    assert await yard.marker(manifest)
    assert not (await yard.entry_of(run))["key_held"]


async def test_a_group_is_cancelled_as_a_whole(app, yard):
    runs = [await yard.dispatch() for _ in range(3)]
    assert sorted((await app.acancel_group("default")).ended) == runs


async def test_an_execution_is_cancelled_with_the_attempts_that_would_follow(app, yard, door, executions):
    run = await yard.dispatch()
    async with door.transaction() as conn:
        ending = Ending(run, await yard.claimed(run), ExecutionState.FAILED, failure="error")
        await executions.end(conn, [ending], now=None)
    assert len(await yard.queued()) == 1
    await app.acancel_execution(run)
    assert await yard.queued() == []


async def test_what_does_not_exist_cannot_be_cancelled(app):
    with pytest.raises(UnknownManifest):
        await app.acancel("nothing")
    with pytest.raises(UnknownGroup):
        await app.acancel_group("nothing")
    with pytest.raises(UnknownWork):
        await app.acancel_execution(4711)
    with pytest.raises(UnknownWork):
        await app.acancel_entry(4711)


class Half(Cancellations):
    """The control: looks at the entries only before the executions."""

    async def _cancel_entries(self, conn, scope, now, cancelled, manifests) -> None:
        if not getattr(self, "_looked", False):
            self._looked = True
            await super()._cancel_entries(conn, scope, now, cancelled, manifests)


async def retries_left(monkeypatch, kind, app, yard, door, executions) -> int:
    """How many retries wait after a run failed while a cancel of it was between its steps."""
    monkeypatch.setattr("interlock.operate.cancel.Cancellations", kind)
    run = await yard.dispatch()
    ending = Ending(run, await yard.claimed(run), ExecutionState.FAILED, failure="error")

    async def fail_meanwhile() -> None:
        async with door.transaction() as conn:
            await executions.end(conn, [ending], now=None)

    failpoints.arm("cancel.between_entries_and_executions", fail_meanwhile)
    try:
        await app.acancel_execution(run)
    finally:
        failpoints.disarm()
    return len(await yard.queued())


async def test_a_run_that_fails_in_the_middle_of_a_cancel_leaves_no_retry(monkeypatch, app, yard, door, executions):
    assert await retries_left(monkeypatch, Cancellations, app, yard, door, executions) == 0


async def test_control_without_the_second_look_the_retry_survives(monkeypatch, app, yard, door, executions):
    assert await retries_left(monkeypatch, Half, app, yard, door, executions) == 1


async def test_a_trigger_touches_neither_plan_nor_marker_and_is_not_blocked(app, yard):
    manifest = await yard.manifest("m")
    before = await yard.conn.fetchrow("SELECT planned_at, next_run_at FROM interlock.manifest WHERE id = $1", manifest)
    await app.atrigger("m")
    await app.atrigger("m", delay=timedelta(minutes=30))
    now, later = await yard.queued()
    assert (now["kind"], now["ready"], later["ready"]) == ("manual", True, False)
    assert later["scheduled_at"] - later["created_at"] == timedelta(minutes=30)
    after = await yard.conn.fetchrow("SELECT planned_at, next_run_at FROM interlock.manifest WHERE id = $1", manifest)
    assert after == before
    with pytest.raises(UnknownManifest):
        await app.atrigger("nothing")


async def test_a_switch_answers_whether_it_changed_anything_and_keeps_the_plan(app, yard):
    manifest = await yard.manifest("m")
    await yard.conn.execute("UPDATE interlock.manifest SET next_run_at = planned_at")
    assert await app.adisable("m")
    assert not await app.adisable("m")
    assert not await yard.marker(manifest)
    assert await app.aenable("m")
    assert not await app.aenable("m")
    assert await yard.marker(manifest)
    with pytest.raises(UnknownManifest):
        await app.aenable("nothing")


async def test_enabling_what_is_still_active_sets_no_marker_and_its_end_does(app, yard, door, executions):
    manifest = await yard.manifest("m", enabled=False)
    run = await yard.dispatch(kind="scheduled", manifest=manifest, fire_key="f")
    token = await yard.claimed(run)
    await app.aenable("m")
    assert not await yard.marker(manifest)
    async with door.transaction() as conn:
        await executions.end(conn, [Ending(run, token, ExecutionState.COMPLETED, output="1")], now=None)
    assert await yard.marker(manifest)


async def test_a_pause_is_taken_once_and_taken_back_once(app, yard):
    assert await app.apause(actor="ada")
    assert not await app.apause()
    assert await yard.conn.fetchval("SELECT paused_by FROM interlock.train WHERE name = '*'") == "ada"
    assert await app.aresume()
    assert not await app.aresume()
    assert await app.apause("work")


async def test_the_blocking_twins_do_the_same(app, yard):
    await yard.manifest("m")
    run = await yard.dispatch()
    await asyncio.to_thread(app.trigger, "m")
    await asyncio.to_thread(app.disable, "m")
    await asyncio.to_thread(app.enable, "m")
    await asyncio.to_thread(app.pause)
    await asyncio.to_thread(app.resume)
    assert len((await asyncio.to_thread(app.cancel, "m")).entries) == 1
    assert (await asyncio.to_thread(app.cancel_execution, run)).ended == [run]
    assert (await asyncio.to_thread(app.cancel_group, "default")).ended == []
    assert (await asyncio.to_thread(app.cancel_entry, (await yard.entry_of(run))["id"])).ended == []
