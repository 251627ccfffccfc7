from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from interlock.errors import InvalidOption
from interlock.runtime.clock import DatabaseClock, FakeClock

START = datetime(2030, 1, 1, tzinfo=UTC)


def test_in_production_the_database_decides():
    assert DatabaseClock().injected() is None


def test_injected_time_moves_only_when_it_is_told_to():
    clock = FakeClock(START)
    assert clock.injected() == clock.injected() == START
    assert clock.advance(timedelta(hours=3)) == clock.injected() == clock.now == START + timedelta(hours=3)


def test_injected_time_does_not_move_local_deadlines():
    clock = FakeClock(START)
    before = clock.monotonic()
    clock.advance(timedelta(days=30))
    assert clock.monotonic() - before < 60


def test_injected_time_moves_by_real_hours_whatever_the_clocks_of_its_zone_do():
    spring_forward = datetime(2030, 3, 31, 1, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    clock = FakeClock(spring_forward)
    assert clock.now == spring_forward
    assert clock.advance(timedelta(hours=1)) == datetime(2030, 3, 31, 1, 30, tzinfo=UTC)
    assert clock.advance(timedelta(hours=1)) == datetime(2030, 3, 31, 2, 30, tzinfo=UTC)


@pytest.mark.parametrize("start", [datetime(2030, 1, 1), date(2030, 1, 1), "2030-01-01"])  # noqa: DTZ001  the mistake under test
def test_a_start_that_is_no_instant_is_refused(start):
    with pytest.raises(InvalidOption, match="time zone"):
        FakeClock(start)


@pytest.mark.parametrize("by", [5, None])
def test_time_moves_by_durations_only(by):
    with pytest.raises(InvalidOption, match="timedelta"):
        FakeClock(START).advance(by)


def test_time_does_not_run_backwards():
    with pytest.raises(InvalidOption, match="backwards"):
        FakeClock(START).advance(timedelta(seconds=-1))
