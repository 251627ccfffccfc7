from __future__ import annotations

from datetime import UTC, datetime, timedelta

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


def test_a_start_without_a_zone_is_refused():
    with pytest.raises(InvalidOption, match="time zone"):
        FakeClock(datetime(2030, 1, 1))  # noqa: DTZ001  the mistake under test


def test_time_does_not_run_backwards():
    with pytest.raises(InvalidOption, match="backwards"):
        FakeClock(START).advance(timedelta(seconds=-1))
