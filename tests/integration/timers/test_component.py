"""Timers of a running server."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from interlock import Interlock, LockServiceUnavailable, cron, every, exclude
from interlock.errors import DeclarationAfterStart, DuplicateName
from interlock.observe.events import TimerLockBack, TimerLockDown, TimerSkipped, TimerStarted
from tests.harness.ports import free_port
from tests.harness.waiting import eventually


@pytest.fixture
def app(migrated) -> Interlock:
    app = Interlock(migrated, name="shop", shutdown_timeout=timedelta(seconds=5))
    app.said = []
    app.events.subscribe(app.said.append)
    return app


def count(app, kind) -> int:
    return sum(isinstance(event, kind) for event in app.said)


async def trouble(app) -> bool:
    [row] = await app.timers.alist()
    return bool(row.lock_trouble)


async def quiet(app) -> bool:
    return not await trouble(app)


async def test_timers_fire_on_a_server_and_their_totals_are_listed(app, migrated):
    ran = []

    @app.timer(every(milliseconds=50), name="often")
    async def often() -> None:
        ran.append("often")

    @app.timer(cron("* * * * * *"), name="plain", max_concurrency=2)
    def plain() -> None:
        ran.append("plain")

    later = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=6)
    opens, closes = later.time(), (later + timedelta(hours=1)).time()
    app.add_timer("not now", often, every(milliseconds=50), exclude=[exclude.window(closes, opens)])
    async with app.running(["timers"]):
        await eventually(lambda: ran.count("often") >= 3 and "plain" in ran, 60, "some runs")
        await eventually(lambda: count(app, TimerSkipped), 60, "a skip")
    async with Interlock(migrated, name="shop") as client:
        rows = {row.name: row for row in await client.timers.alist()}
        assert await client.locks.aholders() == []
    assert rows["often"].runs == ran.count("often")
    assert rows["not now"].runs == 0
    assert rows["not now"].skips["excluded_window"] >= 1
    assert rows["plain"].max_concurrency == 2


async def test_a_server_without_the_role_fires_nothing(app):
    @app.timer(every(milliseconds=10), spread_start=False)
    async def body() -> None:
        pytest.fail("it ran")

    async with app.running(["worker"]):
        await asyncio.sleep(0.1)
    assert count(app, TimerStarted) == 0


async def test_a_shutdown_waits_for_what_runs(app):
    entered, go, done = asyncio.Event(), asyncio.Event(), []

    @app.timer(every(hours=1), spread_start=False, name="long")
    async def long() -> None:
        entered.set()
        await go.wait()
        done.append(True)

    async with app.running(["timers"]):
        await entered.wait()
        asyncio.get_running_loop().call_later(0.1, go.set)
    assert done == [True]


async def test_declarations_after_the_start_and_twice_are_refused(app):
    app.timer(every(hours=1), name="one")(_nothing)
    with pytest.raises(DuplicateName):
        app.timer(every(hours=1), name="one")(_nothing)
    async with app.running(["timers"]):
        with pytest.raises(DeclarationAfterStart):
            app.timer(every(hours=1), name="late")(_nothing)


async def test_an_outage_of_redis_is_told_once_and_ends_without_a_restart(migrated, own_valkey, monkeypatch):
    url = f"redis://127.0.0.1:{own_valkey.port}/0"
    app = Interlock(migrated, lock_backend="redis", redis_url=url)
    app.said = []
    app.events.subscribe(app.said.append)
    app.timer(every(milliseconds=100), name="t", spread_start=False)(_nothing)
    monkeypatch.setattr("interlock.timers.component.WRITE_INTERVAL", timedelta(milliseconds=200))
    async with app.running(["timers"]):
        await eventually(lambda: count(app, TimerStarted), 60, "a run")
        own_valkey.kill()
        await eventually(lambda: count(app, TimerSkipped) >= 5, 60, "skips")
        await eventually(lambda: trouble(app), 60, "word of it in the database")
        own_valkey.start()
        await eventually(lambda: count(app, TimerLockBack), 60, "slots again")
        started = count(app, TimerStarted)
        await eventually(lambda: count(app, TimerStarted) > started, 60, "a run")
        await eventually(lambda: quiet(app), 60, "word of its end")
    assert count(app, TimerLockDown) == 1


async def test_from_one_server_to_many_a_lock_service_is_asked_for_those_timers_only_that_want_it(migrated):
    nobody_there = {"lock_backend": "redis", "redis_url": f"redis://127.0.0.1:{free_port()}/0"}
    app = Interlock(migrated, timers_distributed=False, **nobody_there)
    app.said = []
    app.events.subscribe(app.said.append)
    app.timer(every(milliseconds=50), name="for itself", spread_start=False)(_nothing)
    app.timer(every(milliseconds=50), name="together", spread_start=False, distributed=True)(_nothing)
    async with app.running(["timers"]):
        await eventually(lambda: count(app, TimerStarted) > 2 and count(app, TimerLockDown), 60, "both to be tried")
        listed = {row.name: row.distributed for row in await app.timers.alist()}
    assert listed == {"for itself": False, "together": True}
    assert {event.timer for event in app.said if isinstance(event, TimerStarted)} == {"for itself"}
    assert {event.timer for event in app.said if isinstance(event, TimerLockDown)} == {"together"}


async def test_a_timer_that_must_not_run_without_locks_ends_its_server(migrated, own_valkey):
    url = f"redis://127.0.0.1:{own_valkey.port}/0"
    app = Interlock(migrated, lock_backend="redis", redis_url=url)
    app.timer(every(milliseconds=50), name="t", spread_start=False, when_lock_down="raise")(_nothing)
    own_valkey.kill()
    try:
        with pytest.raises(LockServiceUnavailable):
            await asyncio.wait_for(app.arun(["timers"]), 20)
    finally:
        own_valkey.start()


async def _nothing() -> None:
    return None
