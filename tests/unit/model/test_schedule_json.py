from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.errors import InvalidSchedule
from interlock.model.exclusion import WEEKDAYS, DateRange, Dates, Weekdays, Window
from interlock.model.schedule import Cron, Dependent, Dormant, Every, Manual, Once
from interlock.model.schedule_json import decode_exclusions, decode_schedule, encode_exclusions, encode_schedule

NAMES = st.text(min_size=1, max_size=20)
DURATIONS = st.timedeltas(min_value=timedelta(milliseconds=1), max_value=timedelta(days=36525))
EXPRESSIONS = st.sampled_from(["@daily", "0 3 * * *", "*/5 * * * * *", "0 9 * * MON#2"])
SCHEDULES = st.one_of(
    st.builds(Every, DURATIONS),
    st.builds(Cron, EXPRESSIONS, st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"])),
    st.builds(Once, st.datetimes(max_value=datetime(8999, 1, 1), timezones=st.timezones()), st.none()),  # noqa: DTZ001
    st.builds(Once, st.none(), DURATIONS | st.just(timedelta(0))),
    st.builds(Dependent, NAMES),
    st.builds(Dormant, NAMES),
    st.just(Manual()),
)
CLOCKS = st.times().map(lambda clock: clock.replace(microsecond=0))
EXCLUSIONS = st.one_of(
    st.builds(Weekdays, st.lists(st.sampled_from(WEEKDAYS), min_size=1).map(tuple)),
    st.builds(Dates, st.lists(st.dates(), min_size=1).map(tuple)),
    st.tuples(st.dates(), st.dates()).map(lambda ends: DateRange(min(ends), max(ends))),
    st.tuples(CLOCKS, CLOCKS).filter(lambda ends: ends[0] != ends[1]).map(lambda ends: Window(*ends)),
)


@given(schedule=SCHEDULES)
def test_a_schedule_survives_storage(schedule):
    assert decode_schedule(json.loads(json.dumps(encode_schedule(schedule)))) == schedule


@given(exclusions=st.lists(EXCLUSIONS, max_size=5))
def test_exclusions_survive_storage(exclusions):
    assert decode_exclusions(json.loads(json.dumps(encode_exclusions(exclusions)))) == exclusions


def test_the_stored_form_is_plain():
    assert encode_schedule(Every(timedelta(minutes=5))) == {"kind": "every", "interval_us": 300_000_000}
    assert encode_schedule(Once(datetime(2030, 1, 1, tzinfo=UTC), None)) == {
        "kind": "once",
        "at": "2030-01-01T00:00:00.000000+00:00",
    }
    assert encode_exclusions([Window(time(22), time(6)), Weekdays(("sun", "sat")), Dates((date(2030, 12, 24),))]) == [
        {"kind": "window", "start": "22:00:00", "end": "06:00:00"},
        {"kind": "weekdays", "names": ["sat", "sun"]},
        {"kind": "dates", "dates": ["2030-12-24"]},
    ]


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        {},
        {"kind": "sometimes"},
        {"kind": "every"},
        {"kind": "every", "interval_us": "5"},
        {"kind": "every", "interval_us": 0},
        {"kind": "every", "interval_us": 10**30},
        {"kind": "every", "interval_us": 300_000_000, "unless": "it rains"},
        {"kind": "cron", "expression": "0 3 * * *"},
        {"kind": "cron", "expression": "0 3 * *", "tz": "UTC"},
        {"kind": "cron", "expression": "0 3 * * *", "tz": "Nowhere"},
        {"kind": "once"},
        {"kind": "once", "at": "soon"},
        {"kind": "once", "at": "2030-01-01T00:00:00"},
        {"kind": "once", "after_us": -1},
        {"kind": "once", "at": "2030-01-01T00:00:00+00:00", "after_us": 1},
        {"kind": "dependent", "parent": ""},
        {"kind": "dormant"},
        {"kind": "manual", "tz": "UTC"},
    ],
)
def test_a_stored_schedule_that_makes_no_sense_is_refused(stored: object):
    with pytest.raises(InvalidSchedule):
        decode_schedule(stored)


@pytest.mark.parametrize(
    "stored",
    [
        None,
        {},
        [None],
        [{"kind": "weekdays", "names": []}],
        [{"kind": "weekdays", "names": ["someday"]}],
        [{"kind": "weekdays", "names": [5]}],
        [{"kind": "dates", "dates": ["2030-02-30"]}],
        [{"kind": "dates", "dates": [20300101]}],
        [{"kind": "date_range", "first": "2030-01-02", "last": "2030-01-01"}],
        [{"kind": "window", "start": "22:00", "end": "22:00"}],
        [{"kind": "window", "start": "22:00"}],
        [{"kind": "window", "start": "22:00", "end": "06:00", "tz": "UTC"}],
    ],
)
def test_stored_exclusions_that_make_no_sense_are_refused(stored: object):
    with pytest.raises(InvalidSchedule):
        decode_exclusions(stored)
