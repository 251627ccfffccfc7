"""Timers of a server that moves only when a test says so."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from interlock import Interlock, cron, every, exclude
from interlock.store.timer import Timers
from interlock.testing import stepper
from tests.harness import databases

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def app(migrated) -> Interlock:
    app = Interlock(migrated, name="shop")
    app.ran = []
    return app


def record(app: Interlock, name: str, schedule, **options) -> None:
    async def body() -> None:
        app.ran.append(name)

    app.add_timer(name, body, schedule, **options)


async def test_a_tick_fires_what_is_due_and_waits_for_its_end(app):
    record(app, "poll", every(seconds=10), spread_start=False)
    async with stepper(app, start=NOON) as step:
        [totals] = await step.tick("timers")
        assert (totals.name, totals.runs, app.ran) == ("poll", 1, ["poll"])
        assert await step.tick("timers") == []
        step.advance(timedelta(seconds=9.999))
        assert await step.tick("timers") == []
        step.advance(timedelta(milliseconds=1))
        await step.tick("timers")
        assert app.ran == ["poll", "poll"]


async def test_cron_exclusions_and_skips_are_seen_at_the_time_of_the_test(app):
    record(app, "nightly", cron("0 3 * * *"))
    record(app, "shy", every(hours=1), spread_start=False, exclude=[exclude.window("14:00", "16:00")])
    async with stepper(app, start=NOON) as step:
        await step.tick("timers")
        step.advance(timedelta(hours=2))
        [totals] = await step.tick("timers")
        assert (totals.name, totals.skips) == ("shy", {"excluded_window": 1})
        step.advance(timedelta(hours=13))
        await step.tick("timers")
        assert app.ran == ["shy", "nightly", "shy"]
        rows = {row.name: row for row in await app.timers.alist()}
        assert (rows["shy"].runs, rows["shy"].skips) == (2, {"excluded_window": 1})


async def test_a_tick_of_the_fleet_is_taken_at_the_time_of_the_test(app, migrated):
    other = Interlock(migrated, name="shop", server_name="other")
    other.ran = []
    for each in (app, other):
        record(each, "once", every(minutes=1), spread_start=False, runs_per_tick=1)
    async with stepper(app, start=NOON) as first, stepper(other, start=NOON) as second:
        await first.tick("timers")
        [totals] = await second.tick("timers")
        assert totals.skips == {"tick_taken": 1}
        second.advance(timedelta(minutes=1))
        await second.tick("timers")
    assert (app.ran, other.ran) == (["once"], ["once"])


@pytest.mark.parametrize("runs_per_tick", [1, None])
async def test_a_timer_whose_row_is_gone_is_declared_again_and_goes_on_with_the_next_tick(app, migrated, runs_per_tick):
    """As after an older backup was restored under a living server."""
    record(app, "once", every(minutes=1), spread_start=False, runs_per_tick=runs_per_tick)
    record(app, "other", every(minutes=1), spread_start=False)
    async with stepper(app, start=NOON) as step:
        await step.tick("timers")
        await asyncio.to_thread(databases.execute, migrated, "DELETE FROM interlock.timer WHERE name = 'once'")
        for _ in range(2):
            step.advance(timedelta(minutes=1))
            await step.tick("timers")
        rows = {row.name: (row.runs, dict(row.skips)) for row in await app.timers.alist()}
    missed = runs_per_tick or 0
    assert rows == {"once": (2 - missed, {"tick_taken": 1} if missed else {}), "other": (3, {})}
    assert app.ran.count("once") == 3 - missed


async def test_totals_that_could_not_be_written_are_written_with_the_next(app, monkeypatch):
    async def no_answer(*_) -> None:
        raise OSError("the database is away")

    record(app, "poll", every(minutes=1), spread_start=False)
    async with stepper(app, start=NOON) as step:
        with monkeypatch.context() as away:
            away.setattr(Timers, "add_totals", no_answer)
            with pytest.raises(OSError, match="away"):
                await step.tick("timers")
        step.advance(timedelta(minutes=1))
        await step.tick("timers")
        [row] = await app.timers.alist()
    assert (row.runs, len(app.ran)) == (2, 2)
    assert row.last_run_at is not None
