"""What has served its time goes; what somebody may still need stays."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from interlock import Interlock
from interlock.runtime.clock import FakeClock
from interlock.runtime.loop import IMMEDIATELY
from interlock.testing import stepper
from interlock.upkeep.retention import WHOLE_EVERY
from interlock.upkeep.settings import UpkeepSettings

if TYPE_CHECKING:
    from interlock.observe.events import HistoryForgotten

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


async def test_ended_executions_go_by_age(attic):
    await attic.ended(days=31)
    await attic.ended(days=31, failed=True)
    kept = await attic.ended(days=29)
    assert await attic.retention().tick() == UpkeepSettings().cleanup_interval
    assert await attic.ids("execution") == {kept}


async def test_what_is_pending_or_in_progress_never_goes(attic):
    pending, running = await attic.dispatch(), await attic.dispatch()
    await attic.claimed(running)
    await attic.conn.execute(
        "UPDATE interlock.execution SET created_at = now() - interval '1 year', started_at = now() - interval '1 year'"
    )
    entries = {await attic.left(execution, 365 * DAY) for execution in (pending, running)}
    await attic.retention(execution_retention=timedelta(seconds=1)).run()
    assert await attic.ids("execution") == {pending, running}
    assert await attic.ids("work_queue") == entries
    assert await attic.ids("background_job", "execution_id") == {pending}


async def test_a_manifests_last_success_stays_and_the_ones_before_it_go(attic):
    manifest = await attic.manifest("extract")
    await attic.ended(days=400, manifest=manifest)
    last = await attic.ended(days=300, manifest=manifest)
    await attic.ended(days=200, manifest=manifest, failed=True)
    await attic.conn.execute("UPDATE interlock.manifest SET last_success_execution_id = $1", last)
    await attic.retention().run()
    assert await attic.ids("execution") == {last}


class Watch:
    """The database's time, and local seconds that a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def injected(self) -> None:
        return None

    def monotonic(self) -> float:
        return self.seconds


async def test_what_had_to_stay_is_not_looked_at_in_every_pass_but_goes_within_the_hour(attic):
    manifest, watch = await attic.manifest("extract"), Watch()
    first = await attic.ended(days=40, manifest=manifest)
    await attic.conn.execute("UPDATE interlock.manifest SET last_success_execution_id = $1", first)
    retention = attic.retention(clock=watch)
    await retention.step()
    second = await attic.ended(days=1, manifest=manifest)
    await attic.conn.execute("UPDATE interlock.manifest SET last_success_execution_id = $1", second)
    watch.seconds += WHOLE_EVERY.total_seconds()
    await attic.ended(days=30.01)
    await retention.step()
    assert await attic.ids("execution") == {first, second}, "what came of age since the last pass went"
    watch.seconds += 1
    await retention.step()
    assert await attic.ids("execution") == {second}


async def test_a_pass_that_filled_its_batch_is_followed_by_one_from_the_beginning(attic):
    for _ in range(3):
        await attic.ended(days=40)
    retention = attic.retention(clock=Watch(), cleanup_batch=1)
    for left in (2, 1, 0, 0):
        await retention.step()
        assert len(await attic.ids("execution")) == left


async def test_what_an_interrupted_pass_or_a_rehearsal_took_back_is_found_by_the_next_pass(attic):
    async def interrupt(conn, batch):
        raise RuntimeError("before the commit")

    await attic.ended(days=40)
    interrupted, rehearsed = attic.retention(clock=Watch()), attic.retention(clock=Watch())
    with pytest.raises(RuntimeError):
        await interrupted.run(interrupt)
    await interrupted.step()
    assert await attic.ids("execution") == set()
    await attic.ended(days=40)
    await rehearsed.rehearse(10)
    await rehearsed.step()
    assert await attic.ids("execution") == set()


async def test_what_an_open_dead_letter_names_stays_until_it_is_resolved(attic):
    execution = await attic.ended(days=31, failed=True)
    letter = await attic.dead_letter(days=None, execution=execution)
    await attic.retention().run()
    assert await attic.ids("execution") == {execution}
    await attic.conn.execute(
        "UPDATE interlock.dead_letter SET state = 'acknowledged', resolved_at = now() WHERE id = $1", letter
    )
    await attic.retention().run()
    assert await attic.ids("execution") == set()


async def test_each_train_may_say_how_long_its_own_are_kept(attic):
    await attic.train("brief", retention=HOUR)
    await attic.train("archived", retention=365 * DAY, aliases=["older"])
    await attic.ended("brief", days=0.1)
    await attic.ended("archived", days=366)
    await attic.ended("other", days=31)
    kept = {
        await attic.ended("brief", days=0.01),
        await attic.ended("archived", days=364),
        await attic.ended("older", days=364),
        await attic.ended("other", days=29),
    }
    forgotten = await attic.retention().run()
    assert await attic.ids("execution") == kept
    assert forgotten.trains == {"brief": 1, "archived": 1, "other": 1}


async def test_an_entry_goes_an_hour_after_it_left(attic):
    old, young = await attic.ended(days=1), await attic.ended(days=1)
    kept = await attic.left(young, timedelta(minutes=59))
    await attic.left(old, timedelta(minutes=61))
    await attic.retention().run()
    assert await attic.ids("work_queue") == {kept}


async def test_an_entry_that_holds_a_key_stays(attic):
    execution = await attic.ended(days=2, key="order:1")
    kept = await attic.left(execution, 2 * DAY)
    await attic.retention().run()
    assert await attic.ids("work_queue") == {kept}
    await attic.conn.execute("UPDATE interlock.work_queue SET key_held = false")
    await attic.retention().run()
    assert await attic.ids("work_queue") == set()


async def test_resolved_dead_letters_go_and_open_ones_never(attic):
    await attic.dead_letter(days=31)
    kept = {await attic.dead_letter(days=29, execution=1), await attic.dead_letter(days=None, execution=2)}
    await attic.retention().run()
    assert await attic.ids("dead_letter") == kept


async def test_acts_leave_the_audit_by_age_unless_it_is_kept_for_ever(attic):
    old, lately = await attic.act(days=366), await attic.act(days=364)
    await attic.retention(audit_retention=None).run()
    assert await attic.ids("audit") == {old, lately}
    assert (await attic.retention().run()).rows["acts"] == 1
    assert await attic.ids("audit") == {lately}


async def test_two_servers_forget_acts_at_once_and_wait_for_nobody(attic):
    acts = [await attic.act(days=400) for _ in range(20)]
    kept = await attic.act(days=1)
    async with attic.conn.transaction():
        held = await attic.conn.fetchval("SELECT id FROM interlock.audit WHERE id = $1 FOR UPDATE", acts[3])
        both = [attic.retention(cleanup_batch=5).run() for _ in range(2)]
        await asyncio.wait_for(asyncio.gather(*both), 60)
        assert held in await attic.ids("audit")
    await attic.retention().run()
    assert await attic.ids("audit") == {kept}


async def test_a_job_without_an_active_execution_goes_and_is_a_warning(attic):
    healthy = await attic.dispatch()
    orphan = await attic.ended(days=0)
    entry = await attic.left(orphan, timedelta())
    await attic.conn.execute("INSERT INTO interlock.background_job SELECT $1, 'work', 0, 0, now(), $2", orphan, entry)
    heard: list[HistoryForgotten] = []
    await attic.retention(emit=heard.append).tick()
    assert await attic.ids("background_job", "execution_id") == {healthy}
    (event,) = heard
    assert (event.orphaned_jobs, event.severity()) == (1, 30)


async def test_trains_and_groups_that_nobody_uses_go(attic):
    used, paused_in, unused = await attic.group("used"), await attic.group("paused"), await attic.group("unused")
    assert unused
    await attic.train("lately", days=29, group_id=used)
    await attic.train("paused", days=31, group_id=paused_in, paused=True)
    await attic.train("long-ago", days=31)
    await attic.retention().tick()
    assert await attic.ids("train", "name") == {"lately", "paused"}
    assert await attic.ids("manifest_group", "name") == {"default", "used", "paused"}


async def test_no_group_goes_while_somebody_declares(attic):
    """A server that starts found the group unused and is about to give it a manifest."""
    await attic.group("found")
    async with attic.conn.transaction():
        await attic.conn.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended('interlock declarations interlock', 0))"
        )
        await asyncio.wait_for(attic.retention().tick(), 60)
        assert "found" in await attic.ids("manifest_group", "name")
    await attic.retention().tick()
    assert "found" not in await attic.ids("manifest_group", "name")


async def test_a_full_batch_is_followed_by_the_next_at_once(attic):
    for _ in range(3):
        await attic.ended(days=31)
    retention = attic.retention(cleanup_batch=2)
    assert await retention.tick() == IMMEDIATELY
    assert len(await attic.ids("execution")) == 1
    assert await retention.tick() == UpkeepSettings().cleanup_interval
    assert await attic.ids("execution") == set()


async def test_two_servers_that_clean_up_at_once_both_succeed_and_wait_for_nobody(attic):
    for days in range(31, 71):
        await attic.ended(f"train{days % 3}", days=days)
        await attic.dead_letter(days=days, execution=days)
    async with attic.conn.transaction():
        held = await attic.conn.fetchval("SELECT id FROM interlock.execution ORDER BY ended_at LIMIT 1 FOR UPDATE")
        both = [attic.retention(cleanup_batch=3).run() for _ in range(2)]
        first, second = await asyncio.wait_for(asyncio.gather(*both), 60)
    assert (first + second).rows["executions"] == 39, "all but the one that was held"
    assert await attic.ids("execution") == {held}
    assert await attic.ids("dead_letter") == set()
    assert await attic.ids("work_queue") == set()


async def test_injected_time_ages_history(attic):
    await attic.ended(days=0)
    clock = FakeClock(await attic.conn.fetchval("SELECT now()"))
    retention = attic.retention(clock=clock)
    await retention.tick()
    assert len(await attic.ids("execution")) == 1
    clock.advance(31 * DAY)
    await retention.tick()
    assert await attic.ids("execution") == set()


async def test_a_dry_run_counts_what_would_go_and_keeps_it(attic):
    await attic.train("brief", retention=HOUR)
    for _ in range(3):
        await attic.ended("brief", days=1)
    await attic.ended(days=31)
    before = await attic.ids("execution")
    would = await attic.retention().rehearse(100)
    assert await attic.ids("execution") == before
    assert len(await attic.ids("work_queue")) == 4
    assert await attic.retention().run() == would
    assert would.rows["entries"] == 4
    assert would.trains == {"brief": 3, "work": 1}


@pytest.mark.parametrize("most", [1, 2])
async def test_a_dry_run_counts_no_further_than_asked(attic, most):
    for _ in range(3):
        await attic.ended(days=31)
    assert (await attic.retention().rehearse(most)).fills(most)


async def test_the_retention_of_a_train_reaches_the_servers_that_do_not_know_it(attic, migrated):
    app = Interlock(migrated)

    @app.train(name="brief", retention=HOUR)
    def brief() -> None: ...

    async with stepper(app) as step:
        await attic.ended("brief", days=1)
        kept = await attic.ended("other", days=1)
        await attic.retention().tick()
        assert await attic.ids("execution") == {kept}
        step.advance(31 * DAY)
        await step.tick("retention")
    assert await attic.ids("execution") == set()
