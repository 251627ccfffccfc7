from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.errors import InvalidSchedule
from interlock.model.exclusion import (
    WEEKDAYS,
    DateRange,
    Dates,
    Weekdays,
    Window,
    exclude,
    is_excluded,
    next_allowed,
)

if TYPE_CHECKING:
    from interlock.model.exclusion import (
        Exclusion,
    )

BERLIN = ZoneInfo("Europe/Berlin")
MINUTE = timedelta(minutes=1)
MOMENTS = {
    "Berlin springs forward": ("Europe/Berlin", datetime(2024, 3, 31, 1, tzinfo=UTC)),
    "Berlin falls back": ("Europe/Berlin", datetime(2024, 10, 27, 1, tzinfo=UTC)),
    "New York springs forward": ("America/New_York", datetime(2024, 3, 10, 7, tzinfo=UTC)),
    "New York falls back": ("America/New_York", datetime(2024, 11, 3, 6, tzinfo=UTC)),
    "Lord Howe springs forward by 30 minutes": ("Australia/Lord_Howe", datetime(2024, 10, 5, 15, 30, tzinfo=UTC)),
    "Lord Howe falls back by 30 minutes": ("Australia/Lord_Howe", datetime(2024, 4, 6, 15, tzinfo=UTC)),
    "Cairo springs forward at midnight": ("Africa/Cairo", datetime(2024, 4, 25, 22, tzinfo=UTC)),
    "Cairo falls back over midnight": ("Africa/Cairo", datetime(2024, 10, 31, 21, tzinfo=UTC)),
    "Saint John's falls back a minute after midnight": ("America/St_Johns", datetime(2010, 11, 7, 2, 31, tzinfo=UTC)),
    "leap day": ("Europe/Berlin", datetime(2024, 2, 29, 12, tzinfo=UTC)),
}


def clock_excludes(exclusion: Exclusion, wall: datetime) -> bool:
    """The rule a second time, on minutes since midnight and on day numbers."""
    minute = wall.hour * 60 + wall.minute
    match exclusion:
        case Weekdays(names):
            return wall.strftime("%a").lower() in names
        case Dates(days):
            return any(wall.toordinal() == day.toordinal() for day in days)
        case DateRange(first, last):
            return wall.toordinal() in range(first.toordinal(), last.toordinal() + 1)
        case Window(start, end):
            length = ((end.hour - start.hour) * 60 + end.minute - start.minute) % 1440
            return (minute - start.hour * 60 - start.minute) % 1440 < length


def minute_by_minute(exclusions: list[Exclusion], tz: str, at: datetime, until: datetime) -> datetime | None:
    while at <= until:
        wall = at.astimezone(ZoneInfo(tz)).replace(tzinfo=None)
        if not any(clock_excludes(exclusion, wall) for exclusion in exclusions):
            return at
        at += MINUTE
    return None


@st.composite
def exclusions_near(draw, day: date) -> list[Exclusion]:
    days = st.integers(-3, 3).map(lambda away: day + timedelta(days=away))
    clocks = st.builds(time, st.integers(0, 23), st.sampled_from([0, 1, 15, 30, 45, 59]))
    kinds = st.one_of(
        st.builds(Weekdays, st.lists(st.sampled_from(WEEKDAYS), min_size=1, max_size=3).map(tuple)),
        st.builds(Dates, st.lists(days, min_size=1, max_size=3).map(tuple)),
        st.tuples(days, days).map(lambda ends: DateRange(min(ends), max(ends))),
        st.tuples(clocks, clocks).filter(lambda ends: ends[0] != ends[1]).map(lambda ends: Window(*ends)),
    )
    return draw(st.lists(kinds, min_size=1, max_size=4))


@pytest.mark.parametrize("moment", MOMENTS)
@settings(deadline=None, max_examples=60)
@given(data=st.data(), away=st.integers(-36 * 60, 12 * 60))
def test_the_next_allowed_instant_is_the_one_found_minute_by_minute(moment: str, data: st.DataObject, away: int):
    tz, change = MOMENTS[moment]
    exclusions, at = data.draw(exclusions_near(change.date())), change + away * MINUTE
    until = at + timedelta(days=4)
    found = next_allowed(exclusions, tz, at)
    expected = minute_by_minute(exclusions, tz, at, until)
    assert found == expected or (expected is None and (found is None or found > until))
    assert (is_excluded(exclusions, tz, at) is None) == (expected == at)


def test_a_window_over_midnight_includes_its_start_and_not_its_end():
    night = [exclude.window("22:00", "06:00")]
    excluded = {clock: bool(is_excluded(night, "UTC", datetime(2024, 5, 5, *clock, tzinfo=UTC))) for clock in CLOCKS}
    assert excluded == CLOCKS


CLOCKS = {
    (21, 59, 59, 999_999): False,
    (22, 0): True,
    (0, 0): True,
    (5, 59, 59, 999_999): True,
    (6, 0): False,
    (12, 0): False,
}


def test_a_repeated_hour_is_excluded_both_times():
    window = [exclude.window("02:00", "03:00")]
    at = datetime(2024, 10, 27, 0, tzinfo=UTC)
    assert is_excluded(window, "Europe/Berlin", at)
    assert is_excluded(window, "Europe/Berlin", at + timedelta(hours=1))
    assert next_allowed(window, "Europe/Berlin", at) == at + timedelta(hours=2)


def test_a_window_that_the_clock_jumps_over_excludes_nothing():
    before = datetime(2024, 3, 31, 0, 59, 59, tzinfo=UTC)
    window = [exclude.window("02:00", "03:00")]
    assert next_allowed(window, "Europe/Berlin", before) == before
    assert next_allowed(window, "Europe/Berlin", before + timedelta(seconds=1)) == before + timedelta(seconds=1)


def test_a_clock_that_goes_back_out_of_a_window_allows_at_once():
    window = [exclude.window("02:30", "03:30")]
    first_pass = datetime(2024, 10, 27, 0, 45, tzinfo=UTC)
    assert next_allowed(window, "Europe/Berlin", first_pass) == datetime(2024, 10, 27, 1, tzinfo=UTC)


def test_a_clock_that_goes_back_over_midnight_leaves_an_excluded_day():
    """Saint John's once moved its clock from 00:01 to 23:01 of the day before."""
    just_after_midnight = datetime(2010, 11, 7, 2, 30, tzinfo=UTC)
    sunday = [exclude.dates("2010-11-07")]
    assert is_excluded(sunday, "America/St_Johns", just_after_midnight)
    assert next_allowed(sunday, "America/St_Johns", just_after_midnight) == just_after_midnight + MINUTE


def test_any_exclusion_suffices_and_the_one_that_matched_is_named():
    weekend, night = exclude.weekdays("sat", "sun"), exclude.window("22:00", "06:00")
    saturday_noon, tuesday_night = datetime(2024, 5, 4, 12, tzinfo=UTC), datetime(2024, 5, 7, 23, tzinfo=UTC)
    assert is_excluded([weekend, night], "UTC", saturday_noon) is weekend
    assert is_excluded([weekend, night], "UTC", tuesday_night) is night
    assert is_excluded([weekend, night], "UTC", datetime(2024, 5, 7, 12, tzinfo=UTC)) is None
    assert next_allowed([weekend, night], "UTC", saturday_noon) == datetime(2024, 5, 6, 6, tzinfo=UTC)


def test_days_are_those_of_the_zone():
    saturday = datetime(2024, 5, 3, 22, tzinfo=UTC)
    assert is_excluded([exclude.weekdays("sat")], "Europe/Berlin", saturday)
    assert not is_excluded([exclude.weekdays("sat")], "UTC", saturday)


def test_a_long_range_is_left_in_one_step_at_local_midnight():
    freeze = [exclude.date_range("2024-01-01", "2026-06-30")]
    assert next_allowed(freeze, "Europe/Berlin", datetime(2024, 2, 29, tzinfo=UTC)) == datetime(
        2026, 7, 1, tzinfo=BERLIN
    )


@pytest.mark.parametrize(
    "exclusions",
    [
        [exclude.weekdays(*WEEKDAYS)],
        [exclude.window("00:00", "12:00"), exclude.window("12:00", "00:00")],
        [exclude.date_range("2020-01-01", "2040-01-01")],
        [exclude.date_range(date.min, date.max)],
    ],
)
def test_when_nothing_is_allowed_for_five_years_the_answer_is_never(exclusions: list[Exclusion]):
    assert next_allowed(exclusions, "Europe/Berlin", datetime(2024, 1, 1, tzinfo=UTC)) is None


def test_without_exclusions_everything_is_allowed():
    at = datetime(2024, 1, 1, tzinfo=UTC)
    assert is_excluded([], "UTC", at) is None
    assert next_allowed([], "UTC", at) == at


def test_what_is_written_in_several_ways_is_the_same():
    assert exclude.weekdays("Sunday", "SAT", "sun") == exclude.weekdays("sat", "sun")
    assert exclude.dates("2030-12-24", date(2030, 12, 24)) == exclude.dates(date(2030, 12, 24))
    assert exclude.window("22:00", "06:00:00") == exclude.window(time(22), time(6))


@pytest.mark.parametrize(
    "wrong",
    [
        exclude.weekdays,
        lambda: exclude.weekdays("someday"),
        lambda: exclude.weekdays(5),
        lambda: exclude.weekdays(""),
        exclude.dates,
        lambda: exclude.dates("2030-02-30"),
        lambda: exclude.dates("tomorrow"),
        lambda: exclude.dates("20301224"),
        lambda: exclude.dates(datetime(2030, 12, 24, tzinfo=UTC)),
        lambda: exclude.dates(None),
        lambda: exclude.date_range("2030-01-02", "2030-01-01"),
        lambda: exclude.date_range("2030-01-02", None),
        lambda: exclude.window("22:00", "22:00"),
        lambda: exclude.window("22:00", "24:00"),
        lambda: exclude.window("25:00", "06:00"),
        lambda: exclude.window("9:00", "10:00"),
        lambda: exclude.window("22", "06"),
        lambda: exclude.window("22:00\n", "06:00"),
        lambda: exclude.window(22, 6),
        lambda: exclude.window(time(22, tzinfo=UTC), time(6)),
        lambda: exclude.window(time(22, microsecond=1), time(6)),
    ],
)
def test_an_exclusion_that_cannot_be_is_refused_at_the_call(wrong):
    with pytest.raises(InvalidSchedule):
        wrong()
