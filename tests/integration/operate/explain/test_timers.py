"""Why a timer does not run."""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock import cron, every, exclude
from interlock.model.schedule_json import encode_schedule
from interlock.store.timer import TimerDeclaration, Timers, TimerTotals
from tests.harness.ports import free_port

MINUTE = timedelta(minutes=1)
EVERY_MINUTE = every(minutes=1)


@pytest.fixture
def declare(station):
    async def declared(schedule=EVERY_MINUTE, *, name="poll", cap=1, runs_per_tick=None, distributed=True):
        """As a server that starts would, with one that has the role."""
        timer = TimerDeclaration(
            name=name,
            schedule=encode_schedule(schedule),
            max_concurrency=cap,
            runs_per_tick=runs_per_tick,
            distributed=distributed,
        )
        rows = Timers((await station.app.adatabase()).sql, station.app.timers.namespace)
        await rows.declare(station.conn, None, [timer])
        return rows

    return declared


async def test_without_a_server_that_has_the_role_no_timer_fires(station, declare):
    await station.client()
    await declare()
    assert await station.codes("timer:poll") == ["SCHEDULER_STALLED"]
    assert "ran 0 times, last never" in await station.standing("timer:poll")


@pytest.mark.parametrize(
    ("schedule", "silence", "stalled"),
    [
        (every(seconds=10), MINUTE, False),
        (every(seconds=10), 2 * MINUTE, True),
        (every(days=30), 60 * MINUTE, False),
        (every(days=30), 62 * MINUTE, True),
        (cron("50 11 * * *"), 9 * MINUTE, False),  # the station's clock begins at noon
        (cron("50 11 * * *"), 11 * MINUTE, True),
    ],
)
async def test_a_timer_that_no_server_declares_any_more_is_told(station, declare, schedule, silence, stalled):
    await station.server()
    await declare(schedule)
    await station.conn.execute("UPDATE interlock.timer SET last_run_at = last_seen_at - interval '1 s'")
    assert await station.codes("timer:poll") == []
    await station.conn.execute("UPDATE interlock.timer SET last_seen_at = now() - $1::interval", silence)
    why = await station.why("timer:poll")
    assert list(why) == (["SCHEDULER_STALLED"] if stalled else [])
    if stalled:
        assert "none of the 1 live servers that fire timers has run or skipped it" in why["SCHEDULER_STALLED"].evidence


async def test_held_slots_name_their_holders(station, declare):
    await station.server()
    await declare(cap=2)
    async with station.app.locks.hold("timer:poll", 2):
        assert await station.codes("timer:poll") == []
        async with station.app.locks.hold("timer:poll", 2):
            why = await station.why("timer:poll")
            assert list(why) == ["SLOTS_HELD"]
            assert why["SLOTS_HELD"].details == {"holders": [station.app.locks.owner] * 2, "slots": 2}
            assert why["SLOTS_HELD"].command == "interlock locks release timer:poll 0"


@pytest.mark.parametrize("schedule", [every(minutes=1), cron("* * * * *")])
async def test_a_tick_whose_runs_were_started_is_told_until_the_next_one(station, declare, schedule):
    step = await station.server()
    rows = await declare(schedule, runs_per_tick=1)
    assert await station.codes("timer:poll") == []
    planned = None if schedule == every(minutes=1) else step.now
    interval = MINUTE if planned is None else None
    await rows.take_tick_if_left(
        station.conn, "poll", runs_per_tick=1, interval=interval, planned=planned, now=step.now
    )
    step.advance(MINUTE / 2)
    assert await station.codes("timer:poll") == ["TICK_TAKEN"]
    step.advance(MINUTE / 2)
    assert await station.codes("timer:poll") == []


async def test_the_cap_of_a_server_is_told_by_its_skips_while_the_timer_does_not_run(station, declare):
    await station.server()
    rows = await declare(distributed=False)
    await rows.add_totals(station.conn, "h", [TimerTotals(name="poll", skips={"local_cap": 7})])
    why = await station.why("timer:poll")
    assert list(why) == ["LOCAL_CAP"]
    assert why["LOCAL_CAP"].details == {"skips": 7}
    await station.conn.execute("UPDATE interlock.timer SET last_run_at = $1", station.step.now - MINUTE)
    assert await station.codes("timer:poll") == []


async def test_a_lock_service_that_does_not_answer_is_named(station, declare):
    station.opened(lock_backend="redis", redis_url=f"redis://127.0.0.1:{free_port()}/0")
    await station.server()
    await declare()
    why = await station.why("timer:poll")
    assert list(why) == ["LOCK_SERVICE_DOWN"]
    assert "no answer from the lock service" in why["LOCK_SERVICE_DOWN"].evidence


async def test_a_lock_service_that_did_not_answer_a_server_is_told_by_its_skips(station, declare):
    await station.server()
    rows = await declare()
    await rows.add_totals(station.conn, "h", [TimerTotals(name="poll", skips={"lock_service_down": 3})])
    assert await station.codes("timer:poll") == ["LOCK_SERVICE_DOWN"]


async def test_an_excluded_time_of_a_declared_timer_is_told(station, declare):
    @station.app.timer(every(minutes=1), name="poll", exclude=[exclude.weekdays("mon")])
    async def poll() -> None: ...

    await station.server()
    await declare()
    assert await station.codes("timer:poll") == ["EXCLUDED_WINDOW"]
