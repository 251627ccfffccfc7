from __future__ import annotations

import subprocess
import sys
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from interlock.errors import InvalidSchedule
from interlock.model.cron import ALIASES, checked_expression, next_fire

ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"]


def fires(expression: str, tz: str, after: datetime, until: datetime) -> list[datetime]:
    found = []
    at = next_fire(expression, tz, after)
    while at is not None and at <= until:
        found.append(at)
        at = next_fire(expression, tz, at)
    return found


@pytest.mark.parametrize("tz", ZONES)
@pytest.mark.parametrize(
    "expression", ["0 0 * * *", "30 1 * * *", "45 1 * * *", "15 2 * * *", "30 2 * * *", "0 3 * * *"]
)
@pytest.mark.parametrize("six", [False, True])
def test_a_daily_appointment_is_kept_once_on_every_day_of_a_leap_year(tz: str, expression: str, six: bool):
    zone = ZoneInfo(tz)
    begin, end = datetime(2024, 1, 1, tzinfo=zone), datetime(2025, 1, 1, tzinfo=zone)
    kept = fires(f"0 {expression}" if six else expression, tz, begin - timedelta(microseconds=1), end)
    days = Counter(at.astimezone(zone).date() for at in kept if at < end)
    assert days == Counter({date(2024, 1, 1) + timedelta(days=day): 1 for day in range(366)})


@pytest.mark.parametrize("tz", ZONES)
def test_an_hourly_rhythm_follows_the_wall_and_never_stops(tz: str):
    begin, end = datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)
    beats = fires("@hourly", tz, begin, end)
    apart = Counter(later - earlier for earlier, later in pairwise(beats))
    assert set(apart) <= {timedelta(minutes=30), timedelta(hours=1), timedelta(minutes=90)}
    assert all(beat.astimezone(ZoneInfo(tz)).minute == 0 for beat in beats)


def test_an_appointment_in_the_gap_fires_right_after_it():
    after = datetime(2024, 3, 30, 12, tzinfo=UTC)
    for expression in ("30 2 * * *", "0 30 2 * * *", "*/10 15,30,45 2 * * *"):
        assert next_fire(expression, "Europe/Berlin", after) == datetime(2024, 3, 31, 1, tzinfo=UTC)
    assert next_fire("15 2 * * *", "Australia/Lord_Howe", datetime(2024, 10, 5, 3, tzinfo=UTC)) == datetime(
        2024, 10, 5, 15, 30, tzinfo=UTC
    )


def test_appointments_in_and_at_the_end_of_the_gap_fire_together_once():
    around = datetime(2024, 3, 31, tzinfo=UTC), datetime(2024, 3, 31, 12, tzinfo=UTC)
    assert fires("0,30 2,3 * * *", "Europe/Berlin", *around) == [
        datetime(2024, 3, 31, 1, tzinfo=UTC),
        datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
    ]


@pytest.mark.parametrize("expression", ["30 2 * * *", "0 30 2 * * *"])
def test_an_appointment_in_the_repeated_hour_is_not_kept_again_whoever_asks_when(expression: str):
    first_pass, tomorrow = datetime(2024, 10, 27, 0, 30, tzinfo=UTC), datetime(2024, 10, 28, 1, 30, tzinfo=UTC)
    assert next_fire(expression, "Europe/Berlin", datetime(2024, 10, 26, 12, tzinfo=UTC)) == first_pass
    for minutes in range(75):
        assert next_fire(expression, "Europe/Berlin", first_pass + timedelta(minutes=minutes)) == tomorrow


def test_a_rhythm_beats_in_both_passes_of_the_repeated_hour():
    after = datetime(2024, 10, 26, 23, 59, tzinfo=UTC)
    beats = fires("*/30 2 * * *", "Europe/Berlin", after, after + timedelta(hours=3))
    assert beats == [datetime(2024, 10, 27, hour, minute, tzinfo=UTC) for hour in (0, 1) for minute in (0, 30)]


def test_the_leap_day_comes_every_four_years_but_not_in_2100():
    years = [
        at.year for at in fires("0 0 29 2 *", "UTC", datetime(2088, 3, 1, tzinfo=UTC), datetime(2109, 1, 1, tzinfo=UTC))
    ]
    assert years == [2092, 2096, 2104, 2108]


def test_an_occurrence_is_strictly_after_the_start():
    at = datetime(2024, 5, 5, 3, tzinfo=UTC)
    assert next_fire("0 3 * * *", "UTC", at) == at + timedelta(days=1)
    assert next_fire("0 3 * * *", "UTC", at - timedelta(microseconds=1)) == at


@pytest.mark.parametrize(
    ("alias", "expected"),
    [
        ("@yearly", datetime(2025, 1, 1, tzinfo=UTC)),
        ("@annually", datetime(2025, 1, 1, tzinfo=UTC)),
        ("@monthly", datetime(2024, 6, 1, tzinfo=UTC)),
        ("@weekly", datetime(2024, 5, 19, tzinfo=UTC)),
        ("@daily", datetime(2024, 5, 16, tzinfo=UTC)),
        ("@midnight", datetime(2024, 5, 16, tzinfo=UTC)),
        ("@hourly", datetime(2024, 5, 15, 13, tzinfo=UTC)),
        ("@Daily", datetime(2024, 5, 16, tzinfo=UTC)),
    ],
)
def test_an_alias_means_its_expression(alias: str, expected: datetime):
    assert alias.lower() in ALIASES
    assert next_fire(alias, "UTC", datetime(2024, 5, 15, 12, 30, tzinfo=UTC)) == expected


def test_six_fields_have_the_seconds_first():
    at = datetime(2024, 5, 15, 12, 30, tzinfo=UTC)
    assert next_fire("15 * * * * *", "UTC", at) == at + timedelta(seconds=15)
    assert next_fire("*/20 31 12 * * *", "UTC", at) == at + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("61 * * * *", "the minute field '61'"),
        ("* 24 * * *", "the hour field '24'"),
        ("* * 0 * *", "the day-of-month field '0'"),
        ("* * * 13 *", "the month field '13'"),
        ("* * * * FRI-MON", "the day-of-week field 'FRI-MON'"),
        ("60 * * * * *", "the second field '60'"),
        ("*/0 * * * *", "the minute field '*/0'"),
        ("1,,2 * * * *", "the minute field '1,,2'"),
        ("\x00 * * * *", "the minute field"),
        ("9" * 5000 + " * * * *", "the minute field"),
        ("² * * * *", "the minute field"),
        ("0 0 30 2 *", "never fires"),
        ("0 0 31 4,6 *", "never fires"),
        ("0 0 */31 2 MON#5", "never fires"),
        ("", "has 0 fields"),
        ("* * * *", "has 4 fields"),
        ("* * * * * * *", "has 7 fields"),
        ("@reboot", "is not a cron alias"),
        (None, "is not a cron expression"),
        (5, "is not a cron expression"),
    ],
)
def test_a_wrong_expression_is_refused_and_the_field_named(expression: object, named: str):
    with pytest.raises(InvalidSchedule) as refused:
        checked_expression(expression)
    assert named in str(refused.value)


@pytest.mark.parametrize(
    "expression", ["0 0 29 2 *", "0 0 L * *", "0 0 LW * *", "0 9 * * 5L", "0 9 * * MON#2", "0 0 30 2 1"]
)
def test_what_looks_rare_but_fires_is_accepted(expression: str):
    assert checked_expression(expression) == expression


def test_spacing_does_not_matter():
    assert checked_expression("  0\t3  * * *\n") == "0 3 * * *"


def test_importing_the_rules_loads_neither_cronsim_nor_the_zone_database():
    loaded = "print(sorted({'cronsim', 'zoneinfo'} & set(sys.modules)))"
    probe = f"import sys, interlock.model.plan, interlock.model.schedule_json; {loaded}"
    shown = subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True, text=True, timeout=60)
    assert shown.stdout.strip() == "[]"
