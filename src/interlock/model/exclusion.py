"""When a manifest must not run, read from the wall clock of its time zone.

Any exclusion that matches excludes. Because the wall clock decides, an excluded hour that a clock change repeats is
excluded both times, and one that it leaves out excludes nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

from interlock.errors import InvalidSchedule
from interlock.model.wall_clock import (
    clock_change_between,
    end_of_first_pass,
    first_instant_from,
    instant,
    instants_showing,
    same_offset,
    wall_time,
    zone_named,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from zoneinfo import ZoneInfo

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
HORIZON = timedelta(days=5 * 365 + 2)
_A_DAY = timedelta(days=1)
_CLOCK = re.compile(r"[0-9]{2}:[0-9]{2}(:[0-9]{2})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Weekdays:
    """Whole days of the week, kept in the order Monday to Sunday."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        wanted = {_checked_weekday(name) for name in self.names}
        if not wanted:
            raise InvalidSchedule(found=self.names, problem="names no weekday", hint=f"write {', '.join(WEEKDAYS)}")
        object.__setattr__(self, "names", tuple(name for name in WEEKDAYS if name in wanted))

    def covers(self, wall: datetime) -> bool:
        return WEEKDAYS[wall.weekday()] in self.names


@dataclass(frozen=True, slots=True)
class Dates:
    """Single days, kept in order."""

    days: tuple[date, ...]

    def __post_init__(self) -> None:
        if not self.days:
            raise InvalidSchedule(found=self.days, problem="names no date", hint="write for example '2030-12-24'")
        object.__setattr__(self, "days", tuple(sorted({_checked_date(day) for day in self.days})))

    def covers(self, wall: datetime) -> bool:
        return wall.date() in self.days


@dataclass(frozen=True, slots=True)
class DateRange:
    """All days from the first to the last, both included."""

    first: date
    last: date

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", _checked_date(self.first))
        object.__setattr__(self, "last", _checked_date(self.last))
        if self.last < self.first:
            found = f"{self.first} to {self.last}"
            raise InvalidSchedule(found=found, problem="ends before it begins", hint="write the earlier date first")

    def covers(self, wall: datetime) -> bool:
        return self.first <= wall.date() <= self.last


@dataclass(frozen=True, slots=True)
class Window:
    """A part of every day, the start included and the end not; it may reach over midnight."""

    start: time
    end: time

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", _checked_time(self.start))
        object.__setattr__(self, "end", _checked_time(self.end))
        if self.start == self.end:
            problem = "is a window without length"
            hint = "to exclude whole days use exclude.weekdays or exclude.dates"
            raise InvalidSchedule(found=f"{self.start} to {self.end}", problem=problem, hint=hint)

    def covers(self, wall: datetime) -> bool:
        if self.start < self.end:
            return self.start <= wall.time() < self.end
        return wall.time() >= self.start or wall.time() < self.end


Exclusion = Weekdays | Dates | DateRange | Window


class _Exclude:
    """The exclusions that a user can write."""

    __slots__ = ()

    def weekdays(self, *names: str) -> Weekdays:
        return Weekdays(names)

    def dates(self, *dates: date | str) -> Dates:
        return Dates(tuple(_checked_date(day) for day in dates))

    def date_range(self, first: date | str, last: date | str) -> DateRange:
        return DateRange(_checked_date(first), _checked_date(last))

    def window(self, start: time | str, end: time | str) -> Window:
        return Window(_checked_time(start), _checked_time(end))


exclude = _Exclude()


def is_excluded(exclusions: Sequence[Exclusion], tz: str, at: datetime) -> Exclusion | None:
    """The first exclusion that covers the instant."""
    if not exclusions:
        return None
    wall = wall_time(instant(at), zone_named(tz))
    return next((exclusion for exclusion in exclusions if exclusion.covers(wall)), None)


def next_allowed(exclusions: Sequence[Exclusion], tz: str, at: datetime) -> datetime | None:
    """The first instant from `at` on that nothing excludes; None when five years hold none."""
    allowed: datetime | None = instant(at)
    horizon = instant(at) + HORIZON
    while allowed is not None and allowed <= horizon:
        exclusion = is_excluded(exclusions, tz, allowed)
        if exclusion is None:
            return allowed
        allowed = _end_of(exclusion, zone_named(tz), allowed)
    return None


def _end_of(exclusion: Exclusion, zone: ZoneInfo, at: datetime) -> datetime | None:
    """An instant after `at` up to which the exclusion certainly covers everything."""
    if isinstance(exclusion, Window):
        return _end_of_window(exclusion, zone, at)
    day = _first_day_after(exclusion, wall_time(at, zone))
    # Clocks that go back just after midnight lead out of an excluded day into the one before it.
    ends = (None if day is None else _beginning_of(day, zone, at), end_of_first_pass(at, zone))
    return min((end for end in ends if end is not None), default=None)


def _end_of_window(window: Window, zone: ZoneInfo, at: datetime) -> datetime:
    wall = wall_time(at, zone)
    end = datetime.combine(wall.date(), window.end)
    until = at + ((end if end > wall else end + _A_DAY) - wall)
    return until if same_offset(at, until, zone) else clock_change_between(at, until, zone)


def _first_day_after(exclusion: Weekdays | Dates | DateRange, wall: datetime) -> datetime | None:
    day = datetime.combine(exclusion.last if isinstance(exclusion, DateRange) else wall.date(), time())
    longest = len(exclusion.days) if isinstance(exclusion, Dates) else len(WEEKDAYS)
    for _ in range(longest):
        if day.date() == date.max:
            return None
        day += _A_DAY
        if not exclusion.covers(day):
            return day
    return None


def _beginning_of(midnight: datetime, zone: ZoneInfo, at: datetime) -> datetime:
    later = (showing for showing in instants_showing(midnight, zone) if showing > at)
    return next(later, None) or first_instant_from(midnight, zone)


def _checked_weekday(found: object) -> str:
    name = found.strip().lower() if isinstance(found, str) else ""
    known = [short for short, full in zip(WEEKDAYS, _FULL_NAMES, strict=True) if name in (short, full)]
    if not known:
        raise InvalidSchedule(found=found, problem="is not a weekday", hint=f"write {', '.join(WEEKDAYS)}")
    return known[0]


def _checked_date(found: object) -> date:
    try:
        if isinstance(found, str) and _DATE.fullmatch(found):
            return date.fromisoformat(found)
    except ValueError as error:
        raise InvalidSchedule(found=found, problem="is a day that does not exist") from error
    if isinstance(found, date) and not isinstance(found, datetime):
        return found
    raise InvalidSchedule(found=found, problem="is not a date", hint="write a date or for example '2030-12-24'")


def _checked_time(found: object) -> time:
    try:
        if isinstance(found, str) and _CLOCK.fullmatch(found):
            return time.fromisoformat(found)
    except ValueError as error:
        raise InvalidSchedule(found=found, problem="is a time that no clock shows", hint="midnight is 00:00") from error
    if isinstance(found, time) and found.tzinfo is None and not found.microsecond:
        return found.replace(fold=0)
    hint = "write a time without zone, in whole seconds, or for example '22:00'"
    raise InvalidSchedule(found=found, problem="is not a time of day", hint=hint)
