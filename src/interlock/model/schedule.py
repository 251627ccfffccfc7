"""When a manifest runs: at an interval, by cron, once, after its parent, or only when asked.

A schedule that exists is valid: every way to build one, also from stored data, checks it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeVar, assert_never

from interlock.errors import InvalidSchedule
from interlock.model.cron import checked_expression, next_fire
from interlock.model.wall_clock import instant, zone_named

MINIMUM_INTERVAL = timedelta(milliseconds=1)
MAXIMUM_DURATION = timedelta(days=36525)
_AN_INTERVAL = "write for example every(minutes=5)"
_A_DELAY = "write for example once(after=timedelta(hours=1))"
_LAST_YEAR = 9000  # leaves room for offsets before datetime ends


@dataclass(frozen=True, slots=True)
class Every:
    """At a fixed distance, counted in real time: a clock change does not move it. From 1 ms to 100 years."""

    interval: timedelta

    def __post_init__(self) -> None:
        _check_duration(self.interval, minimum=MINIMUM_INTERVAL, hint=_AN_INTERVAL)


@dataclass(frozen=True, slots=True)
class Cron:
    """At the wall times that a cron expression names in a time zone."""

    expression: str
    tz: str
    zone_is_said: bool = field(default=True, compare=False, repr=False)
    """Whether the zone was named; else that of its manifest or timer takes its place."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "expression", checked_expression(self.expression))
        zone_named(self.tz)


@dataclass(frozen=True, slots=True)
class Once:
    """A single time: at an instant, or this long after the manifest was first stored."""

    at: datetime | None
    after: timedelta | None

    def __post_init__(self) -> None:
        if (self.at is None) == (self.after is None):
            problem = "needs exactly one of at= and after="
            raise InvalidSchedule(found=self, problem=problem, hint=_A_DELAY)
        if self.after is not None:
            _check_duration(self.after, minimum=timedelta(0), hint=_A_DELAY)
        else:
            object.__setattr__(self, "at", _checked_instant(self.at))


@dataclass(frozen=True, slots=True)
class Dependent:
    """Whenever the parent has succeeded again."""

    parent: str

    def __post_init__(self) -> None:
        _check_parent(self.parent)


@dataclass(frozen=True, slots=True)
class Dormant:
    """Only when a run of the parent activates it."""

    parent: str

    def __post_init__(self) -> None:
        _check_parent(self.parent)


@dataclass(frozen=True, slots=True)
class Manual:
    """Only when somebody triggers it."""


Schedule = Every | Cron | Once | Dependent | Dormant | Manual
S = TypeVar("S", bound=Schedule)


def every(
    *,
    weeks: float = 0,
    days: float = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
    milliseconds: float = 0,
) -> Every:
    """Run at a fixed distance of at least one millisecond."""
    return Every(
        _duration(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds)
    )


def cron(expression: str, *, tz: str | None = None) -> Cron:
    """Run by a cron expression of 5 fields, of 6 with seconds first, or an alias such as `@daily`.

    Its times are those of the zone; without one they are those of the manifest's or timer's zone, which is UTC unless
    that says so.
    """
    return Cron(expression, "UTC" if tz is None else tz, zone_is_said=tz is not None)


def once(*, at: datetime | None = None, after: timedelta | None = None) -> Once:
    """Run a single time."""
    return Once(at, after)


def time_zone(schedule: Schedule, override: str | None) -> str:
    """The zone in which the manifest's exclusions are read."""
    if override is not None:
        zone_named(override)
        return override
    return schedule.tz if isinstance(schedule, Cron) else "UTC"


def in_zone(schedule: S, tz: str | None) -> S:
    """A cron expression that names no zone of its own is read in that of its manifest or timer."""
    if tz is None:
        return schedule
    zone_named(tz)
    return replace(schedule, tz=tz) if isinstance(schedule, Cron) and not schedule.zone_is_said else schedule


def next_occurrence(schedule: Schedule, after: datetime, anchor: datetime) -> datetime | None:
    """The first time strictly after `after`; intervals and `once(after=...)` count from the anchor."""
    after, anchor = instant(after), instant(anchor)
    match schedule:
        case Every(interval):
            passed = max(-1, (after - anchor) // interval)
            return anchor + (passed + 1) * interval
        case Cron(expression, tz):
            return next_fire(expression, tz, after)
        case Once():
            at = single_time(schedule, anchor)
            return at if at > after else None
        case Dependent() | Dormant() | Manual():
            return None
        case _:
            assert_never(schedule)


def single_time(schedule: Once, anchor: datetime) -> datetime:
    return schedule.at if schedule.at is not None else anchor + (schedule.after or timedelta(0))


def fire_key(nominal: datetime) -> str:
    """The name of one planned fire, the same on every server and in every zone."""
    return instant(nominal).isoformat(timespec="microseconds")


def _duration(**parts: object) -> timedelta:
    numbers = {
        name: part for name, part in parts.items() if isinstance(part, int | float) and not isinstance(part, bool)
    }
    if len(numbers) < len(parts):
        wrong = {name: part for name, part in parts.items() if name not in numbers}
        raise InvalidSchedule(found=wrong, problem="is not a number", hint=_AN_INTERVAL)
    try:
        return timedelta(**numbers)
    except (OverflowError, ValueError) as error:
        found = {name: number for name, number in numbers.items() if number}
        raise InvalidSchedule(found=found, problem="is not a duration", hint=_AN_INTERVAL) from error


def _check_duration(found: object, *, minimum: timedelta, hint: str) -> None:
    if not isinstance(found, timedelta):
        raise InvalidSchedule(found=found, problem="is not a timedelta", hint=hint)
    if found < minimum:
        least = "must not be negative" if not minimum else "is shorter than the minimum of 1 ms"
        # timedelta writes minus one minute as "-1 day, 23:59:00".
        text = f"-{-found}" if found < timedelta(0) else str(found)
        raise InvalidSchedule(found=text, problem=least, hint=hint)
    if found > MAXIMUM_DURATION:
        raise InvalidSchedule(found=str(found), problem="is longer than 100 years", hint=hint)


def _checked_instant(found: object) -> datetime:
    if not isinstance(found, datetime):
        raise InvalidSchedule(found=found, problem="is not a datetime", hint="write datetime(..., tzinfo=UTC)")
    try:
        at = instant(found)
    except OverflowError as error:
        raise InvalidSchedule(found=found, problem="has no UTC equivalent") from error
    if at.year > _LAST_YEAR:
        raise InvalidSchedule(found=found, problem=f"lies after the year {_LAST_YEAR}")
    return at


def _check_parent(found: object) -> None:
    if not isinstance(found, str) or not found:
        raise InvalidSchedule(found=found, problem="does not name a parent", hint="write the parent's external id")
