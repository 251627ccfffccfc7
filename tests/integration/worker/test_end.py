"""What follows from the end of an execution, whoever ends it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import uuid4

import asyncpg
import pytest

from interlock.model.lifecycle import ExecutionState
from interlock.model.outcome import Ending
from interlock.store.execution import Executions

COMPLETED, FAILED = ExecutionState.COMPLETED, ExecutionState.FAILED
SNOOZED, CANCELLED = ExecutionState.SNOOZED, ExecutionState.CANCELLED
SOON = timedelta(seconds=5)


@pytest.fixture
def end(door, executions):
    async def end(*endings: Ending):
        async with door.transaction() as conn:
            return await executions.end(conn, endings, now=None)

    return end


async def test_an_end_with_another_token_changes_nothing_and_is_missing_from_the_answer(yard, end):
    execution = await yard.dispatch()
    await yard.claimed(execution)
    assert await end(Ending(execution, uuid4(), COMPLETED, output="1")) == []
    assert (await yard.execution(execution))["state"] == "in_progress"


async def test_an_execution_ends_once(yard, end):
    execution = await yard.dispatch()
    token = await yard.claimed(execution)
    [ended] = await end(Ending(execution, token, COMPLETED, output="1"))
    assert ended.state is COMPLETED
    assert await end(Ending(execution, token, FAILED, failure="error")) == []


async def test_a_failure_is_queued_again_with_the_delay_of_its_own_policy(yard, end):
    execution = await yard.dispatch(attempt=3, max_attempts=9)
    [ended] = await end(Ending(execution, await yard.claimed(execution), FAILED, failure="error"))
    [entry] = await yard.queued()
    assert (entry["id"], entry["attempt"], entry["kind"]) == (ended.retry_entry_id, 4, "adhoc")
    assert ended.retry_in == timedelta(seconds=4)
    assert not entry["ready"]
    assert entry["previous_execution_id"] == execution


async def test_the_delay_never_grows_beyond_its_limit_however_many_attempts(yard, end):
    execution = await yard.dispatch(attempt=5000, max_attempts=9999)
    [ended] = await end(Ending(execution, await yard.claimed(execution), FAILED, failure="error"))
    assert ended.retry_in == timedelta(seconds=10)


async def test_a_retry_may_bring_its_own_delay(yard, end):
    execution = await yard.dispatch()
    after = timedelta(minutes=7)
    [ended] = await end(Ending(execution, await yard.claimed(execution), FAILED, failure="error", retry_after=after))
    assert ended.retry_in == after


async def test_the_last_attempt_becomes_a_dead_letter_and_no_retry(yard, end):
    execution = await yard.dispatch(attempt=3)
    token = await yard.claimed(execution)
    [ended] = await end(Ending(execution, token, FAILED, failure="error", error_type="ValueError", error_message="no"))
    [letter] = await yard.dead_letters()
    assert (letter["id"], letter["reason"], letter["attempts"]) == (ended.dead_letter_id, "max_attempts", 3)
    assert (letter["error_type"], letter["error_message"]) == ("ValueError", "no")
    assert await yard.queued() == []


async def test_a_snooze_uses_no_attempt(yard, end):
    execution = await yard.dispatch(attempt=2)
    after = timedelta(seconds=30)
    [ended] = await end(Ending(execution, await yard.claimed(execution), SNOOZED, retry_after=after))
    [entry] = await yard.queued()
    assert (entry["attempt"], ended.retry_in) == (2, after)
    assert (await yard.execution(execution))["failure"] is None


async def test_a_lost_run_is_queued_again_at_once_in_its_old_place(yard, end):
    execution = await yard.dispatch(attempt=2, priority=7)
    before = await yard.entry_of(execution)
    await end(Ending(execution, await yard.claimed(execution), FAILED, failure="worker_lost"))
    [entry] = await yard.queued()
    same = ("created_at", "kind", "attempt", "priority", "group_priority", "train", "input")
    assert {name: entry[name] for name in same} == {name: before[name] for name in same}
    assert (entry["crashes"], entry["ready"]) == (1, True)
    assert entry["first_entry_id"] == before["id"]


FOLLOWS = {"retry": Ending(0, None, FAILED, failure="error"), "snooze": Ending(0, None, SNOOZED, retry_after=SOON),
           "recovery": Ending(0, None, FAILED, failure="worker_lost")}  # fmt: skip


@pytest.fixture(params=FOLLOWS)
async def followed(yard, end, request):
    """Ends a scheduled run of a fire so that another entry of the same fire has to follow."""
    fire = "2026-01-02T03:00:00.000000+00:00"

    async def follow() -> list[tuple[str, str]]:
        run = await yard.dispatch(kind="scheduled", manifest=await yard.manifest("m"), fire_key=fire)
        await end(FOLLOWS[request.param]._replace(execution_id=run, claim_token=await yard.claimed(run)))
        return [(entry["kind"], entry["fire_key"]) for entry in await yard.queued()]

    return follow, [("scheduled", fire)]


async def test_what_follows_a_scheduled_run_keeps_its_kind_and_fire_and_does_not_collide_with_it(followed):
    follow, expected = followed
    assert await follow() == expected


async def test_control_an_index_on_all_entries_of_a_fire_lets_nothing_follow(yard, followed):
    await yard.conn.execute("DROP INDEX interlock.work_queue_one_entry_per_fire")
    await yard.conn.execute(
        "CREATE UNIQUE INDEX ON interlock.work_queue (manifest_id, fire_key) WHERE kind = 'scheduled'"
    )
    follow, _ = followed
    with pytest.raises(asyncpg.UniqueViolationError):
        await follow()


async def test_work_that_loses_too_many_servers_is_dead_lettered_as_a_crash_loop(yard, end):
    execution = await yard.dispatch(crashes=2, max_crashes=3)
    [ended] = await end(Ending(execution, await yard.claimed(execution), FAILED, failure="worker_lost"))
    assert ended.dead_letter_reason == "crash_loop"
    assert (await yard.dead_letters())[0]["crashes"] == 3
    assert await yard.queued() == []


async def test_a_server_lost_before_the_work_began_counts_as_no_crash(yard, end):
    execution = await yard.dispatch(crashes=2, max_crashes=3, claimable=False)
    await end(Ending(execution, None, FAILED, failure="worker_lost"))
    [entry] = await yard.queued()
    assert entry["crashes"] == 2


async def test_no_retry_follows_once_a_person_asked_for_cancellation(yard, end):
    execution = await yard.dispatch()
    token = await yard.claimed(execution)
    await yard.conn.execute(
        "UPDATE interlock.execution SET cancel_requested_at = now(), cancel_cause = 'person' WHERE id = $1", execution
    )
    [ended] = await end(Ending(execution, token, FAILED, failure="error"))
    assert ended.retry_entry_id is None
    assert await yard.queued() == []


async def test_a_snooze_of_what_a_person_cancelled_meanwhile_ends_it(yard, end):
    """As snoozed it would look as if something came after it, for ever."""
    execution = await yard.dispatch()
    token = await yard.claimed(execution)
    await yard.conn.execute(
        "UPDATE interlock.execution SET cancel_requested_at = now(), cancel_cause = 'person' WHERE id = $1", execution
    )
    [ended] = await end(Ending(execution, token, SNOOZED, error_message="later", retry_after=SOON))
    assert (ended.state, ended.retry_entry_id, await yard.queued()) == (CANCELLED, None, [])
    row = await yard.execution(execution)
    assert (row["state"], row["error_message"]) == ("cancelled", "cancelled on request")


async def test_a_timeout_is_tried_again(yard, end):
    execution = await yard.dispatch()
    token = await yard.claimed(execution)
    await yard.conn.execute(
        "UPDATE interlock.execution SET cancel_requested_at = now(), cancel_cause = 'timeout' WHERE id = $1", execution
    )
    [ended] = await end(Ending(execution, token, FAILED, failure="timeout"))
    assert ended.retry_entry_id is not None


async def test_a_retry_takes_the_key_along_and_an_end_frees_it(yard, end):
    execution = await yard.dispatch(key="k")
    await end(Ending(execution, await yard.claimed(execution), FAILED, failure="error"))
    assert not (await yard.entry_of(execution))["key_held"]
    [entry] = await yard.queued()
    assert (entry["key"], entry["key_held"]) == ("k", True)
    again = await yard.dispatch()
    await yard.conn.execute(
        "UPDATE interlock.work_queue SET state='cancelled', key_held=false, left_at=now() WHERE id=$1", entry["id"]
    )
    await yard.conn.execute("UPDATE interlock.work_queue SET key='k', key_held=true WHERE execution_id=$1", again)
    await end(Ending(again, await yard.claimed(again), COMPLETED, output="1"))
    assert not (await yard.entry_of(again))["key_held"]


async def test_an_unclaimed_job_goes_with_its_execution(yard, end):
    execution = await yard.dispatch()
    await end(Ending(execution, None, CANCELLED))
    assert await yard.conn.fetchval("SELECT count(*) FROM interlock.background_job") == 0


async def test_a_success_unblocks_its_manifest_and_wakes_its_dependents(yard, end):
    parent = await yard.manifest("parent")
    child = await yard.manifest("child", kind="dependent", parent=parent, planned=False)
    asleep = await yard.manifest("asleep", kind="dormant", parent=parent, planned=False)
    execution = await yard.dispatch(kind="scheduled", manifest=parent, fire_key="f")
    [ended] = await end(Ending(execution, await yard.claimed(execution), COMPLETED, output="1"))
    assert ended.wakes_manager
    assert [await yard.marker(one) for one in (parent, child, asleep)] == [True, True, False]
    assert (
        await yard.conn.fetchval("SELECT last_success_execution_id FROM interlock.manifest WHERE id = $1", parent)
        == execution
    )


async def test_a_parent_and_its_child_that_succeed_in_one_batch_are_both_recorded(yard, end):
    parent = await yard.manifest("parent")
    child = await yard.manifest("child", kind="dependent", parent=parent, planned=False)
    runs = [await yard.dispatch(kind="scheduled", manifest=one, fire_key="f") for one in (parent, child)]
    await end(*[Ending(run, await yard.claimed(run), COMPLETED, output="1") for run in runs])
    rows = await yard.conn.fetch("SELECT last_success_execution_id FROM interlock.manifest ORDER BY id")
    assert [row[0] for row in rows] == runs
    assert await yard.marker(child)


async def test_a_failure_that_is_tried_again_leaves_its_manifest_blocked(yard, end):
    manifest = await yard.manifest("m")
    execution = await yard.dispatch(kind="scheduled", manifest=manifest, fire_key="f")
    await end(Ending(execution, await yard.claimed(execution), FAILED, failure="error"))
    assert not await yard.marker(manifest)


async def test_a_manual_run_its_retry_and_its_dead_letter_hold_back_no_marker(yard, end):
    manifest = await yard.manifest("hourly")
    for most in (1, 3):  # the first leaves a dead letter, the second a retry, the third goes on
        manual = await yard.dispatch(kind="manual", manifest=manifest, max_attempts=most)
        await end(Ending(manual, await yard.claimed(manual), FAILED, failure="error"))
    await yard.claimed(await yard.dispatch(kind="manual", manifest=manifest))
    scheduled = await yard.dispatch(kind="scheduled", manifest=manifest, fire_key="1")
    await end(Ending(scheduled, await yard.claimed(scheduled), COMPLETED, output="1"))
    assert (len(await yard.dead_letters()), [entry["kind"] for entry in await yard.queued()]) == (1, ["manual"])
    assert await yard.marker(manifest)


async def test_a_manual_run_sets_no_marker_but_wakes_dependents(yard, end):
    parent = await yard.manifest("parent")
    child = await yard.manifest("child", kind="dependent", parent=parent, planned=False)
    execution = await yard.dispatch(kind="manual", manifest=parent)
    await end(Ending(execution, await yard.claimed(execution), COMPLETED, output="1"))
    assert [await yard.marker(one) for one in (parent, child)] == [False, True]


async def test_a_second_dead_letter_of_a_manifest_is_not_written_while_one_is_open(yard, end):
    manifest = await yard.manifest("m")
    for _ in range(2):
        execution = await yard.dispatch(kind="requeue", manifest=manifest, attempt=3)
        await end(Ending(execution, await yard.claimed(execution), FAILED, failure="error"))
    assert len(await yard.dead_letters()) == 1
    assert not await yard.marker(manifest)


class Unlocked(Executions):
    """The control: looks at what blocks a manifest without locking it first."""

    def __init__(self, sql) -> None:
        super().__init__(sql)
        real = sql["execution/lock_manifests"]

        class Skip:
            async def fetch(self, _, **__):
                return []

        class WithoutLock:
            def __getitem__(self, name):
                return Skip() if name == real.name else sql[name]

        self._sql = WithoutLock()


async def two_ends_at_once(migrated, door, yard, executions) -> bool:
    """Whether the marker is there after two runs of one manifest ended in overlapping transactions."""
    manifest = await yard.manifest("m")
    first, second = [await yard.dispatch(kind="dormant", manifest=manifest) for _ in range(2)]
    endings = [Ending(one, await yard.claimed(one), CANCELLED) for one in (first, second)]
    other = await asyncpg.connect(migrated)
    try:
        transaction = other.transaction()
        await transaction.start()
        await executions.end(other, endings[:1], now=None)

        async def end_second():
            async with door.transaction() as conn:
                await executions.end(conn, endings[1:], now=None)

        late = asyncio.create_task(end_second())
        await asyncio.wait({late}, timeout=0.3)
        await transaction.commit()
        await late
    finally:
        await other.close()
    return await yard.marker(manifest)


async def test_of_two_runs_that_end_at_once_one_sets_the_marker(migrated, door, yard, executions):
    assert await two_ends_at_once(migrated, door, yard, executions)


async def test_control_without_the_lock_first_both_see_the_other_and_the_marker_is_lost(migrated, door, yard):
    assert not await two_ends_at_once(migrated, door, yard, Unlocked(door.sql))
