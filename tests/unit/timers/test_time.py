"""Timers go by the database's time, whatever the clock of the host says."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from interlock.timers.time import DatabaseTime

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


async def noon() -> datetime:
    return NOON


@pytest.mark.parametrize("off_by", [timedelta(hours=-1), timedelta(hours=1)])
async def test_a_host_clock_that_is_an_hour_off_changes_nothing(monkeypatch, off_by):
    wrong = time.time() + off_by.total_seconds()
    monkeypatch.setattr("time.time", lambda: wrong)
    clock = DatabaseTime(noon)
    await clock.refresh()
    assert NOON <= clock.now() < NOON + timedelta(seconds=5)


async def test_it_goes_on_between_two_readings_and_counts_from_the_middle_of_the_question():
    moments = iter([10.0, 12.0, 15.0])
    clock = DatabaseTime(noon, clock=lambda: next(moments))
    await clock.refresh()
    assert clock.now() == NOON + timedelta(seconds=4)


async def test_a_time_that_a_test_moves_stands_still_in_between():
    clock = DatabaseTime(noon, moves=False)
    await clock.refresh()
    assert clock.now() == clock.now() == NOON


def test_it_has_no_time_before_it_was_read():
    with pytest.raises(AssertionError):
        DatabaseTime(noon).now()
