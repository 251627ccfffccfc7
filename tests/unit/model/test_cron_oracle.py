"""Cron against a second computation: every minute (or second) around a clock change, looked at one by one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.model import cron as cron_module
from interlock.model.cron import next_fire
from interlock.model.wall_clock import instants_showing

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)

MOMENTS = {
    "Berlin springs forward": ("Europe/Berlin", datetime(2024, 3, 31, 1, tzinfo=UTC)),
    "Berlin falls back": ("Europe/Berlin", datetime(2024, 10, 27, 1, tzinfo=UTC)),
    "New York springs forward": ("America/New_York", datetime(2024, 3, 10, 7, tzinfo=UTC)),
    "New York falls back": ("America/New_York", datetime(2024, 11, 3, 6, tzinfo=UTC)),
    "Lord Howe springs forward by 30 minutes": ("Australia/Lord_Howe", datetime(2024, 10, 5, 15, 30, tzinfo=UTC)),
    "Lord Howe falls back by 30 minutes": ("Australia/Lord_Howe", datetime(2024, 4, 6, 15, tzinfo=UTC)),
    "Cairo springs forward at midnight": ("Africa/Cairo", datetime(2024, 4, 25, 22, tzinfo=UTC)),
    "Cairo falls back over midnight": ("Africa/Cairo", datetime(2024, 10, 31, 21, tzinfo=UTC)),
    "leap day": ("Europe/Berlin", datetime(2024, 2, 29, 12, tzinfo=UTC)),
    "leap day in UTC": ("UTC", datetime(2024, 2, 29, 12, tzinfo=UTC)),
}


@dataclass(frozen=True)
class Field:
    text: str
    values: frozenset[int]

    @property
    def starred(self) -> bool:
        return self.text.startswith("*")


@dataclass(frozen=True)
class Fields:
    second: Field
    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field

    def name(self, wall: datetime) -> bool:
        in_month, in_week = wall.day in self.day.values, wall.isoweekday() % 7 in self.weekday.values
        either = self.day.starred or self.weekday.starred
        return (
            wall.second in self.second.values
            and wall.minute in self.minute.values
            and wall.hour in self.hour.values
            and wall.month in self.month.values
            and ((in_month and in_week) if either else (in_month or in_week))
        )

    @property
    def appointment(self) -> bool:
        return not self.minute.starred and not self.hour.starred

    def expression(self, *, six: bool) -> str:
        five = [self.minute, self.hour, self.day, self.month, self.weekday]
        return " ".join(field.text for field in ([self.second, *five] if six else five))


@dataclass(frozen=True)
class Moment:
    at: datetime
    wall: datetime
    shown_before: bool
    left_out: tuple[datetime, ...]


@lru_cache(maxsize=64)
def timeline(tz: str, begin: datetime, end: datetime, step: timedelta) -> list[Moment]:
    zone = ZoneInfo(tz)
    moments, seen = [], set()
    at, previous = begin, None
    while at <= end:
        wall = at.astimezone(zone).replace(tzinfo=None, fold=0)
        left_out = []
        if previous is not None:
            missing = previous + step
            while missing < wall:
                left_out.append(missing)
                missing += step
        moments.append(Moment(at, wall, wall in seen, tuple(left_out)))
        seen.add(wall)
        at, previous = at + step, wall
    return moments


def oracle(fields: Fields, moments: list[Moment], after: datetime) -> list[datetime]:
    return [moment.at for moment in moments if moment.at > after and fires(fields, moment)]


def fires(fields: Fields, moment: Moment) -> bool:
    if not fields.appointment:
        return fields.name(moment.wall)
    due = fields.name(moment.wall) and not moment.shown_before
    return due or any(fields.name(wall) for wall in moment.left_out)


def walk(expression: str, tz: str, after: datetime, end: datetime) -> list[datetime]:
    found = []
    at = next_fire(expression, tz, after)
    while at is not None and at <= end:
        found.append(at)
        at = next_fire(expression, tz, at)
    return found


def a_field(lowest: int, highest: int, *, starred: bool = True) -> st.SearchStrategy[Field]:
    everything = range(lowest, highest + 1)
    lists = st.lists(st.sampled_from(everything), min_size=1, max_size=4, unique=True).map(
        lambda values: Field(",".join(map(str, values)), frozenset(values))
    )
    ranges = st.tuples(st.sampled_from(everything), st.sampled_from(everything)).map(
        lambda ends: Field(f"{min(ends)}-{max(ends)}", frozenset(range(min(ends), max(ends) + 1)))
    )
    steps = st.sampled_from([2, 3, 5, 7, 10, 15, 20, 30]).map(
        lambda step: Field(f"*/{step}", frozenset(everything[::step]))
    )
    star = st.just(Field("*", frozenset(everything)))
    return st.one_of(lists, ranges, steps, star) if starred else st.one_of(lists, ranges)


ANY_DAY = st.just(Field("*", frozenset(range(1, 32))))
ANY_WEEKDAY = st.just(Field("*", frozenset(range(7))))
NIGHT = st.lists(st.sampled_from([0, 1, 2, 3, 4, 23]), min_size=1, max_size=3, unique=True).map(
    lambda hours: Field(",".join(map(str, hours)), frozenset(hours))
)
ANY_MONTH = st.just(Field("*", frozenset(range(1, 13))))
AT_ANY_TIME = st.builds(
    Fields,
    second=a_field(0, 59),
    minute=a_field(0, 59),
    hour=a_field(0, 23) | NIGHT,
    day=ANY_DAY | a_field(1, 31),
    month=ANY_MONTH,
    weekday=ANY_WEEKDAY | a_field(0, 6),
)
IN_THE_NIGHT = st.builds(
    Fields,
    second=a_field(0, 59, starred=False),
    minute=a_field(0, 59),
    hour=NIGHT,
    day=ANY_DAY,
    month=ANY_MONTH,
    weekday=ANY_WEEKDAY | a_field(0, 6),
)
FIELDS = AT_ANY_TIME | IN_THE_NIGHT
STARTS = st.integers(-10 * 3600 * 10**6, 6 * 3600 * 10**6).map(
    lambda microseconds: timedelta(microseconds=microseconds)
)


@pytest.mark.parametrize("moment", MOMENTS)
@settings(deadline=None, max_examples=60)
@given(fields=FIELDS, start=STARTS)
def test_five_fields_fire_exactly_at_the_minutes_that_the_rule_names(moment: str, fields: Fields, start: timedelta):
    tz, change = MOMENTS[moment]
    begin, end = change - timedelta(hours=14), change + timedelta(hours=40)
    on_the_minute = Fields(Field("0", frozenset({0})), *(getattr(fields, name) for name in REST))
    expected = oracle(on_the_minute, timeline(tz, begin, end, MINUTE), change + start)
    assert walk(fields.expression(six=False), tz, change + start, end) == expected


@pytest.mark.parametrize("moment", MOMENTS)
@settings(deadline=None, max_examples=25)
@given(fields=FIELDS, start=STARTS.map(lambda start: start / 5))
def test_six_fields_fire_exactly_at_the_seconds_that_the_rule_names(moment: str, fields: Fields, start: timedelta):
    tz, change = MOMENTS[moment]
    begin, end = change - timedelta(hours=3), change + timedelta(hours=2, minutes=30)
    expected = oracle(fields, timeline(tz, begin, end, SECOND), change + start)
    assert walk(fields.expression(six=True), tz, change + start, end) == expected


REST = ("minute", "hour", "day", "month", "weekday")
HALF_HOURLY = "*/30 * * * *"
NIGHTLY = "30 2 * * *"
BERLIN_FALLS_BACK = MOMENTS["Berlin falls back"]


def around(moment: tuple[str, datetime], expression: str) -> list[datetime]:
    tz, change = moment
    return walk(expression, tz, change - timedelta(hours=6), change + timedelta(hours=6))


def test_control_without_the_look_back_a_rhythm_loses_the_second_pass(monkeypatch):
    whole = around(BERLIN_FALLS_BACK, HALF_HOURLY)
    monkeypatch.setattr(cron_module, "end_of_first_pass", lambda *_: None)
    assert set(around(BERLIN_FALLS_BACK, HALF_HOURLY)) < set(whole)


def test_control_without_the_guard_an_appointment_is_answered_before_the_start(monkeypatch):
    tz, change = BERLIN_FALLS_BACK
    second_pass = change + timedelta(minutes=10)
    assert next_fire(NIGHTLY, tz, second_pass) > second_pass
    first_match = next(cron_module._matches("0 30 2 * * *", second_pass.astimezone(ZoneInfo(tz)).replace(tzinfo=None)))
    assert cron_module.first_instant_from(first_match, ZoneInfo(tz)) < second_pass


def test_control_without_the_gap_rule_an_appointment_is_lost(monkeypatch):
    moment = MOMENTS["Berlin springs forward"]
    monkeypatch.setattr(
        cron_module,
        "first_instant_from",
        lambda wall, zone: (*instants_showing(wall, zone), moment[1] - timedelta(days=9))[0],
    )
    assert around(moment, NIGHTLY) == []
    monkeypatch.undo()
    assert around(moment, NIGHTLY) == [moment[1]]
