"""Excluded times of timers, over midnight and over clock changes, against a second computation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from hypothesis import assume, given
from hypothesis import strategies as st

from interlock.model.exclusion import exclude, is_excluded
from interlock.model.schedule import every
from interlock.timers.counts import Skip
from interlock.timers.fires import Fires
from interlock.timers.timer import Timer
from tests.unit.timers.conftest import World

if TYPE_CHECKING:
    from datetime import time

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
HOUR = timedelta(hours=1)
CHANGES = (  # the zone, when its clocks change, and its distance from UTC before and after
    ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC), HOUR, 2 * HOUR),
    ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC), 2 * HOUR, HOUR),
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC), -5 * HOUR, -4 * HOUR),
    ("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC), -4 * HOUR, -5 * HOUR),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC), 11 * HOUR, 10.5 * HOUR),
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC), 10.5 * HOUR, 11 * HOUR),
)
moments = st.datetimes(datetime(2024, 1, 1), datetime(2031, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  a zone follows
clocks = st.times().map(lambda clock: clock.replace(microsecond=0))


async def nothing() -> None:
    return None


def inside(start: time, end: time, wall: time) -> bool:
    return start <= wall < end if start < end else not end <= wall < start


@given(moments, clocks, clocks, st.sampled_from(ZONES))
def test_a_blackout_window_is_read_from_the_wall_clock_of_its_zone(at, start, end, zone):
    if start == end:
        return
    timer = Timer(name="t", body=nothing, schedule=every(seconds=10), exclude=(exclude.window(start, end),), tz=zone)
    wall = at.astimezone(ZoneInfo(zone)).time()
    assert (is_excluded(timer.exclude, timer.tz, at) is not None) == inside(start, end, wall)


@given(
    st.sampled_from(CHANGES),
    st.timedeltas(timedelta(hours=-30), timedelta(hours=30)),
    clocks,
    st.timedeltas(timedelta(minutes=1), timedelta(hours=23)),
)
async def test_around_a_clock_change_a_timer_runs_exactly_when_the_clock_on_the_wall_is_outside_the_window(
    change, distance, start, length
):
    """The wall clock is computed from the known moment and offsets of the change, without a time zone database."""
    zone, moment, before, after = change
    at = moment + distance
    wall = (at + (before if at < moment else after)).time()
    end = (datetime.combine(moment.date(), start) + length).time().replace(microsecond=0)
    assume(end != start)
    ran = []

    async def body() -> None:
        ran.append(at)

    world = World()
    world.now = at
    runner = await world.runner(body, exclude=(exclude.window(start, end),), tz=zone)
    reason = await world.fire(runner)
    await runner.finish()
    await world.close()
    assert (reason is Skip.EXCLUDED_WINDOW, len(ran)) == ((True, 0) if inside(start, end, wall) else (False, 1))


@given(moments, st.timedeltas(timedelta(milliseconds=1), timedelta(days=400)), st.text(max_size=10), st.booleans())
def test_the_next_fire_lies_ahead_and_no_further_than_an_interval(now, interval, server, spread_start):
    timer = Timer(name="t", body=nothing, schedule=every(seconds=interval.total_seconds()), spread_start=spread_start)
    fires = Fires(timer, server)
    first = fires.first(now)
    assert now <= first <= now + timer.schedule.interval
    late = first + timer.schedule.interval * 2.5
    following = fires.after(late)
    assert late < following <= late + timer.schedule.interval
