"""Excluded times of timers, over midnight and over clock changes, against a second computation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from interlock.model.exclusion import exclude, is_excluded
from interlock.model.schedule import every
from interlock.timers.fires import Fires
from interlock.timers.timer import Timer

if TYPE_CHECKING:
    from datetime import time

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
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


@given(moments, st.timedeltas(timedelta(milliseconds=1), timedelta(days=400)), st.text(max_size=10), st.booleans())
def test_the_next_fire_lies_ahead_and_no_further_than_an_interval(now, interval, server, spread_start):
    timer = Timer(name="t", body=nothing, schedule=every(seconds=interval.total_seconds()), spread_start=spread_start)
    fires = Fires(timer, server)
    first = fires.first(now)
    assert now <= first <= now + timer.schedule.interval
    late = first + timer.schedule.interval * 2.5
    following = fires.after(late)
    assert late < following <= late + timer.schedule.interval
