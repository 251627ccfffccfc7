"""What `explain` advises is typed as it stands, and then the blocker is gone."""

from __future__ import annotations

import shlex

import asyncpg
import pytest

from interlock import Dead, every
from tests.harness.waiting import eventually
from tests.integration.cli.conftest import interlock
from tests.integration.operate.explain.station import HOUR
from tests.integration.operate.explain.test_messages import publish
from tests.integration.operate.explain.test_timers import declare

__all__ = ["declare", "interlock", "publish"]


@pytest.fixture
def helped(station, interlock):
    """Types the advised command; answers the codes that are left."""

    async def typed(subject: str, code: str, **options) -> list[str]:
        advised = (await station.why(subject, **options))[code].command
        words = shlex.split(advised)[1:]
        done = interlock(*words, "--dsn", station.dsn, env={"INTERLOCK_YES": "1"})
        assert done.returncode == 0, done.stderr
        return await station.codes(subject, **options)

    return typed


@pytest.fixture
def hourly(station):
    station.app.schedule("hourly", station.work.bind(), every(hours=1), group=station.app.group("etl"))
    return "hourly"


async def test_a_manifest_is_switched_on(station, hourly, helped):
    await station.server()
    await station.app.adisable(hourly)
    assert "MANIFEST_DISABLED" not in await helped(hourly, "MANIFEST_DISABLED")


async def test_a_group_is_switched_on(station, hourly, helped):
    await station.server()
    await station.app.aset_group("etl", enabled=False)
    assert "GROUP_DISABLED" not in await helped(hourly, "GROUP_DISABLED")


@pytest.mark.parametrize("train", ["work", "*"])
async def test_a_pause_is_taken_back(station, hourly, helped, train):
    await station.server()
    await station.app.apause(train)
    assert "PAUSED" not in await helped(hourly, "PAUSED")


async def test_a_parent_is_switched_on(station, hourly, helped):
    station.app.schedule("extract", station.work.bind(), every(hours=1)).then("load", station.work.bind())
    await station.server()
    await station.app.adisable("extract")
    assert "PARENT_DISABLED" not in await helped("load", "PARENT_DISABLED")


async def test_what_lies_ahead_runs_out_of_turn(station, hourly, helped):
    await station.server()
    await station.step.drain()
    before = await station.execution()
    await helped(hourly, "SCHEDULED_LATER")
    await station.step.drain()
    assert await station.execution() == before + 1


async def test_a_dormant_manifest_runs_once(station, helped):
    parent = station.app.schedule("extract", station.work.bind(), every(hours=1))
    parent.then("repair", station.work.bind(7), dormant=True)
    await station.server()
    await helped("repair", "DORMANT")
    await station.step.drain()
    assert await station.conn.fetchval("SELECT count(*) FROM interlock.execution WHERE output = '7'") == 1


async def test_a_dead_letter_is_queued_again(station, helped):
    station.app.schedule("fragile", station.fail.bind(), every(hours=1), max_attempts=1)
    await station.server()
    await station.ticks("manifests", "dispatch", "worker")
    assert "DEAD_LETTER_BLOCKS" not in await helped("fragile", "DEAD_LETTER_BLOCKS")


async def test_a_cap_is_raised_by_one(station, helped):
    station.app.group("etl", max_active_jobs=1)
    await station.server()
    await station.work.using(group="etl").aenqueue(1)
    await station.ticks("dispatch")
    await station.work.using(group="etl").aenqueue(2)
    assert "GROUP_AT_CAP" not in await helped(f"entry:{await station.entry()}", "GROUP_AT_CAP")


async def test_an_entry_or_an_execution_that_is_in_the_way_is_cancelled(station, hourly, helped):
    await station.server()
    await station.ticks("manifests")
    assert "ALREADY_QUEUED" not in await helped(hourly, "ALREADY_QUEUED")
    station.step.advance(HOUR)
    await station.ticks("manifests", "dispatch")
    assert "ALREADY_ACTIVE" not in await helped(hourly, "ALREADY_ACTIVE")


async def test_the_slot_of_one_that_hangs_is_taken_away(station, declare, helped):
    await station.server()
    await declare()
    lease = await station.app.locks.atry_hold("timer:poll", slots=1)
    assert "SLOTS_HELD" not in await helped("timer:poll", "SLOTS_HELD")
    lease.abandon()


async def test_a_message_goes_on_when_its_topic_is_unparked_or_it_is_redriven(station, publish, helped):
    @station.app.outbox.emitter("mail")
    async def send(message):
        return Dead("rejected")

    await station.server()
    subject = f"message:{await publish()}"
    await station.app.outbox.apark("mail", actor="ada")
    assert await helped(subject, "TOPIC_PARKED") == []
    await station.ticks("outbox")
    assert await helped(subject, "MESSAGE_GAVE_UP") == []


async def test_a_backend_that_keeps_locks_is_ended(station, interlock):
    await station.server()
    await station.work.aenqueue()
    subject, none = f"entry:{await station.entry()}", HOUR * 0
    other = await asyncpg.connect(station.dsn)
    await other.execute("BEGIN; SELECT 1 FROM interlock.work_queue FOR UPDATE")
    advised = (await station.why(subject, long_transaction=none))["LONG_TRANSACTION"].command
    assert interlock("dsn", "--dsn", station.dsn).stdout.strip() == station.dsn
    await station.conn.execute(shlex.split(advised)[-1])

    async def gone() -> bool:
        return "LONG_TRANSACTION" not in await station.codes(subject, long_transaction=none)

    await eventually(gone, 10, "the end of the backend")
    other.terminate()
