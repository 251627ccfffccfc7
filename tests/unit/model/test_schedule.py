from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.errors import InvalidSchedule
from interlock.model.schedule import (
    Cron,
    Dependent,
    Dormant,
    Every,
    Manual,
    Once,
    cron,
    every,
    fire_key,
    next_occurrence,
    once,
    time_zone,
)

NOON = datetime(2024, 2, 28, 12, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CLOCK_CHANGES = {
    "Europe/Berlin": [datetime(2024, 3, 31, 1, tzinfo=UTC), datetime(2024, 10, 27, 1, tzinfo=UTC)],
    "America/New_York": [datetime(2024, 3, 10, 7, tzinfo=UTC), datetime(2024, 11, 3, 6, tzinfo=UTC)],
    "Australia/Lord_Howe": [datetime(2024, 10, 5, 15, 30, tzinfo=UTC), datetime(2024, 4, 6, 15, tzinfo=UTC)],
    "UTC": [datetime(2024, 2, 29, tzinfo=UTC), datetime(2024, 3, 1, tzinfo=UTC)],
}
LOCAL_TIMES = st.sampled_from(sorted(CLOCK_CHANGES)).flatmap(
    lambda tz: st.builds(
        lambda change, away: (change + away).astimezone(ZoneInfo(tz)),
        st.sampled_from(CLOCK_CHANGES[tz]),
        st.timedeltas(min_value=timedelta(days=-2), max_value=timedelta(days=2)),
    )
)
INTERVALS = st.timedeltas(min_value=timedelta(milliseconds=1), max_value=timedelta(days=400))


def microseconds(at: datetime) -> int:
    return (at.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)


@given(anchor=LOCAL_TIMES, after=LOCAL_TIMES, interval=INTERVALS)
def test_an_interval_is_counted_in_real_time_whatever_the_wall_clock_does(
    anchor: datetime, after: datetime, interval: timedelta
):
    step, start, passed = interval // timedelta(microseconds=1), microseconds(anchor), microseconds(after)
    expected = start if passed < start else start + ((passed - start) // step + 1) * step
    assert microseconds(next_occurrence(Every(interval), after, anchor)) == expected


@pytest.mark.parametrize("tz", sorted(CLOCK_CHANGES))
def test_an_interval_neither_repeats_nor_loses_an_occurrence_over_a_year(tz: str):
    anchor = at = datetime(2024, 1, 1, tzinfo=ZoneInfo(tz))
    found = []
    for _ in range(366 * 4):
        at = next_occurrence(every(hours=6), at.astimezone(ZoneInfo(tz)), anchor)
        found.append(at)
    assert found == [anchor.astimezone(UTC) + timedelta(hours=6) * count for count in range(1, 366 * 4 + 1)]


@given(at=LOCAL_TIMES, after=LOCAL_TIMES)
def test_once_occurs_at_its_time_and_never_again(at: datetime, after: datetime):
    expected = at.astimezone(UTC) if microseconds(at) > microseconds(after) else None
    assert next_occurrence(once(at=at), after, NOON) == expected


@given(anchor=LOCAL_TIMES, after=LOCAL_TIMES, delay=INTERVALS)
def test_once_after_a_delay_counts_from_the_anchor(anchor: datetime, after: datetime, delay: timedelta):
    due = microseconds(anchor) + delay // timedelta(microseconds=1)
    found = next_occurrence(once(after=delay), after, anchor)
    assert (found and microseconds(found)) == (due if due > microseconds(after) else None)


@pytest.mark.parametrize("schedule", [Dependent("extract"), Dormant("extract"), Manual()])
def test_what_waits_for_others_has_no_occurrence(schedule):
    assert next_occurrence(schedule, NOON, NOON) is None


def test_cron_occurs_at_its_next_time_and_not_at_once():
    assert next_occurrence(cron("0 3 * * *"), NOON, NOON) == datetime(2024, 2, 29, 3, tzinfo=UTC)


def test_an_instant_without_zone_is_refused_not_guessed():
    with pytest.raises(InvalidSchedule, match="no time zone"):
        next_occurrence(every(hours=1), datetime(2024, 1, 1), NOON)  # noqa: DTZ001  the mistake itself


def test_units_add_up():
    assert every(weeks=1, days=1, hours=1, minutes=1, seconds=1, milliseconds=1) == Every(
        timedelta(weeks=1, days=1, hours=1, minutes=1, seconds=1, milliseconds=1)
    )
    assert every(minutes=1.5) == every(seconds=90)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"seconds": 0},
        {"minutes": -5},
        {"milliseconds": 0.5},
        {"seconds": "5"},
        {"seconds": None},
        {"hours": True},
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"days": 10**12},
        {"days": 40_000},
    ],
)
def test_an_interval_that_cannot_be_is_refused_at_the_call(wrong: dict):
    with pytest.raises(InvalidSchedule):
        every(**wrong)


def test_the_shortest_interval_is_a_millisecond():
    assert every(milliseconds=1).interval == timedelta(milliseconds=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"at": NOON, "after": timedelta(1)},
        {"at": datetime(2024, 1, 1)},  # noqa: DTZ001  the mistake itself
        {"at": "2024-01-01"},
        {"at": datetime.max.replace(tzinfo=UTC)},
        {"at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))},
        {"after": timedelta(seconds=-1)},
        {"after": 5},
        {"after": timedelta.max},
    ],
)
def test_a_single_time_that_cannot_be_is_refused_at_the_call(wrong: dict):
    with pytest.raises(InvalidSchedule):
        once(**wrong)


def test_once_may_lie_in_the_past_and_start_at_once():
    assert once(at=EPOCH) == Once(EPOCH, None)
    assert once(after=timedelta(0)).after == timedelta(0)


@pytest.mark.parametrize(
    "tz",
    [
        "",
        "Nowhere",
        "../../etc/passwd",
        "/etc/passwd",
        "Europe",
        "UTC\x00",
        "\x00",
        "Eur\ud800",
        "x" * 5000,
        "localtime",
        5,
        [],
    ],
)
def test_an_unknown_or_hostile_zone_is_refused_at_the_call(tz: object):
    with pytest.raises(InvalidSchedule):
        cron("0 3 * * *", tz=tz)
    with pytest.raises(InvalidSchedule):
        time_zone(Manual(), tz)


def test_a_misspelt_zone_is_answered_with_the_right_one():
    with pytest.raises(InvalidSchedule, match="Europe/Berlin"):
        cron("0 3 * * *", tz="Europe/Berlim")


@pytest.mark.parametrize("kind", [Dependent, Dormant])
@pytest.mark.parametrize("parent", ["", None, 5])
def test_a_dependent_names_its_parent(kind, parent: object):
    with pytest.raises(InvalidSchedule):
        kind(parent)


def test_exclusions_are_read_in_the_zone_of_the_manifest_else_of_its_cron_else_utc():
    berlin = cron("0 3 * * *", tz="Europe/Berlin")
    assert time_zone(berlin, "Asia/Tokyo") == "Asia/Tokyo"
    assert time_zone(berlin, None) == "Europe/Berlin"
    assert time_zone(every(hours=1), None) == "UTC"


def test_a_schedule_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Cron("0 3 * * *", "UTC").tz = "Asia/Tokyo"


def test_one_fire_has_one_key_in_every_zone():
    keys = {fire_key(NOON.astimezone(ZoneInfo(tz))) for tz in CLOCK_CHANGES}
    assert keys == {"2024-02-28T12:00:00.000000+00:00"}


def test_the_two_passes_of_a_repeated_hour_have_two_keys():
    wall = datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    assert fire_key(wall) != fire_key(wall.replace(fold=1))


@pytest.mark.parametrize("build", [lambda: every(minutes=-1), lambda: once(after=timedelta(minutes=-1))])
def test_a_negative_duration_is_shown_as_it_was_written(build):
    with pytest.raises(InvalidSchedule, match="'-0:01:00'"):
        build()
