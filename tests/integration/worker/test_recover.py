"""What a lost server held: closed and queued again at once, by one of the others, and by nobody twice."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest

from interlock import failpoints
from interlock.model.server import ServerProfile
from interlock.observe.events import DeadLettered, ExecutionRecovered
from interlock.store.server import Servers
from interlock.worker.recover import Recovery
from tests.harness.unguarded import take_guard_off

LOCK = ("execution/lost", "for update of e skip locked")
STATE = (
    "execution/end",
    "and (e.state = 'in_progress' or (e.state = 'pending' and x.state in ('failed', 'cancelled')))",
)


@pytest.fixture
def registered(door, yard):
    servers = Servers(door.sql)

    async def register(*, state: str = "alive", lease: float = 60):
        await servers.register(
            yard.conn,
            server := uuid4(),
            ServerProfile(name="s", host="h", pid=1, version="0"),
            timedelta(seconds=lease),
        )
        if state != "alive":
            await yard.conn.execute("ALTER TABLE interlock.server DISABLE TRIGGER USER")
            await yard.conn.execute(
                "UPDATE interlock.server SET state = $2, ended_at = now() WHERE id = $1", server, state
            )
        return server

    return register


@pytest.fixture
async def recovery(door, registered):
    judge, events, notices = await registered(), [], []
    recovery = Recovery(
        door, judge=lambda: judge, interval=timedelta(seconds=1), emit=events.append, notify=notices.append
    )
    recovery.events, recovery.notices = events, notices
    return recovery


async def test_every_job_of_a_lost_server_is_closed_and_queued_again(yard, recovery, registered):
    lost = await registered(state="lost")
    runs = [await yard.dispatch(priority=n) for n in range(5)]
    for run in runs:
        await yard.claimed(run, server=lost)
    await recovery.tick()
    rows = [await yard.execution(run) for run in runs]
    assert {(row["state"], row["failure"]) for row in rows} == {("failed", "worker_lost")}
    assert [entry["previous_execution_id"] for entry in await yard.queued()] == runs
    assert {event.execution_id for event in recovery.events if isinstance(event, ExecutionRecovered)} == set(runs)
    assert "work" in recovery.notices


async def test_a_lost_run_uses_up_no_attempt(yard, recovery, registered):
    run = await yard.dispatch(attempt=3, max_attempts=3)
    await yard.claimed(run, server=await registered(state="lost"))
    await recovery.tick()
    assert [entry["attempt"] for entry in await yard.queued()] == [3]


async def test_what_a_server_that_left_still_holds_is_recovered_too(yard, recovery, registered):
    run = await yard.dispatch()
    await yard.claimed(run, server=await registered(state="gone"))
    await recovery.tick()
    assert len(await yard.queued()) == 1


async def test_an_execution_that_a_lost_server_had_not_submitted_yet_is_recovered(yard, recovery, registered):
    run = await yard.dispatch(claimable=False)
    await yard.conn.execute(
        "UPDATE interlock.execution SET submitter = 'http', server_id = $2 WHERE id = $1",
        run,
        await registered(state="lost"),
    )
    await recovery.tick()
    assert [entry["crashes"] for entry in await yard.queued()] == [0]


async def test_what_a_living_server_holds_is_left_alone_however_old(yard, recovery, registered):
    run = await yard.dispatch()
    await yard.claimed(run, server=await registered())
    await yard.conn.execute("UPDATE interlock.execution SET started_at = now() - interval '3 hours' WHERE id = $1", run)
    await recovery.tick()
    assert (await yard.execution(run))["state"] == "in_progress"


async def test_a_backlog_that_nobody_claimed_is_not_stale(yard, recovery):
    run = await yard.dispatch()
    await yard.conn.execute("UPDATE interlock.execution SET created_at = now() - interval '3 days' WHERE id = $1", run)
    await recovery.tick()
    assert (await yard.execution(run))["state"] == "pending"


async def test_work_that_loses_its_server_too_often_waits_for_a_person(yard, recovery, registered):
    run = await yard.dispatch(crashes=2, max_crashes=3)
    await yard.claimed(run, server=await registered(state="lost"))
    await recovery.tick()
    [letter] = await yard.dead_letters()
    assert (letter["reason"], letter["crashes"]) == ("crash_loop", 3)
    assert [event.reason for event in recovery.events if isinstance(event, DeadLettered)] == ["crash_loop"]
    assert any(notice.startswith("ended:") for notice in recovery.notices)
    assert "work" in recovery.notices, "its place under a cap is free"


async def test_two_who_recover_at_once_queue_each_job_once(door, yard, registered):
    lost, judges = await registered(state="lost"), [await registered() for _ in range(4)]
    runs = [await yard.dispatch() for _ in range(40)]
    for run in runs:
        await yard.claimed(run, server=lost)
    ticks = [
        Recovery(door, judge=lambda judge=judge: judge, interval=timedelta(seconds=1), emit=lambda _: None)
        for judge in judges
    ]
    await asyncio.gather(*(tick.tick() for tick in ticks))
    assert sorted(entry["previous_execution_id"] for entry in await yard.queued()) == runs


@pytest.fixture
async def recover_twice(door, yard, registered):
    """Two who recover one job: both have looked before either writes."""
    run = await yard.dispatch()
    await yard.claimed(run, server=await registered(state="lost"))
    met, judge = asyncio.Barrier(2), await registered()

    async def meet() -> None:
        async with asyncio.timeout(60):
            await met.wait()

    async def recover_twice() -> list[int]:
        failpoints.arm("recovery.found", meet)
        both = [
            Recovery(door, judge=lambda: judge, interval=timedelta(seconds=1), emit=lambda _: None) for _ in range(2)
        ]
        await asyncio.gather(*(one._recover() for one in both))
        return [entry["previous_execution_id"] for entry in await yard.queued()]

    yield recover_twice, run
    failpoints.disarm()


async def test_two_who_look_before_either_writes_queue_a_job_once(recover_twice):
    recover, run = recover_twice
    assert await recover() == [run]


@pytest.mark.parametrize("guard", ["lock", "state"])
async def test_either_guard_is_enough(recover_twice, monkeypatch, guard):
    take_guard_off(monkeypatch, {LOCK[0]: LOCK[1]} if guard == "lock" else {STATE[0]: STATE[1]})
    recover, run = recover_twice
    assert await recover() == [run]


async def test_control_without_the_lock_and_the_guard_it_is_queued_twice(recover_twice, monkeypatch):
    take_guard_off(monkeypatch, dict([LOCK, STATE]))
    recover, run = recover_twice
    assert await recover() == [run, run]


async def test_a_judge_that_died_between_its_two_steps_leaves_nothing_behind(yard, recovery, registered):
    """A server that was marked lost long ago, by somebody who did not live to close what it held."""
    run, lost = await yard.dispatch(), await registered(state="lost")
    await yard.claimed(run, server=lost)
    await yard.conn.execute("UPDATE interlock.server SET ended_at = now() - interval '5 hours' WHERE id = $1", lost)
    await recovery.tick()
    assert len(await yard.queued()) == 1


@pytest.mark.parametrize(
    "row",
    [
        "execution WHERE id = $1",
        "work_queue WHERE execution_id = $1",
        "manifest WHERE id = (SELECT manifest_id FROM interlock.execution WHERE id = $1)",
    ],
    ids=lambda row: row.split()[0],
)
async def test_recovery_passes_over_what_somebody_holds_and_does_the_rest(migrated, yard, recovery, registered, row):
    import asyncpg

    held = await yard.dispatch(manifest=await yard.manifest("m"), key="k")
    free, lost = await yard.dispatch(), await registered(state="lost")
    for run in (held, free):
        await yard.claimed(run, server=lost)
    other = await asyncpg.connect(migrated)
    try:
        async with other.transaction():
            await other.execute(f"SELECT FROM interlock.{row} FOR UPDATE", held)
            async with asyncio.timeout(60):
                await recovery.tick()
    finally:
        await other.close()
    assert [entry["previous_execution_id"] for entry in await yard.queued()] == [free]
    await recovery.tick()
    assert {entry["previous_execution_id"] for entry in await yard.queued()} == {free, held}
