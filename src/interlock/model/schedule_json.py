"""Schedules and exclusions as JSON values: durations in whole microseconds, instants as ISO 8601 in UTC.

What is read back is checked like what a user writes. A key that nobody here knows is refused, not ignored: newer code
may have meant it to hold a run back.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, assert_never

from interlock.errors import InvalidSchedule
from interlock.model.exclusion import DateRange, Dates, Weekdays, Window, exclude
from interlock.model.schedule import Cron, Dependent, Dormant, Every, Manual, Once, fire_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.model.exclusion import Exclusion
    from interlock.model.schedule import Schedule

_MICROSECOND = timedelta(microseconds=1)
_NEWER = "was it written by a newer interlock?"


def encode_schedule(schedule: Schedule) -> dict[str, object]:
    match schedule:
        case Every(interval):
            return {"kind": "every", "interval_us": interval // _MICROSECOND}
        case Cron(expression, tz):
            return {"kind": "cron", "expression": expression, "tz": tz}
        case Once(at, after):
            return {"kind": "once", "at": fire_key(at)} if at else {"kind": "once", "after_us": _microseconds(after)}
        case Dependent(parent):
            return {"kind": "dependent", "parent": parent}
        case Dormant(parent):
            return {"kind": "dormant", "parent": parent}
        case Manual():
            return {"kind": "manual"}
        case _:
            assert_never(schedule)


def decode_schedule(stored: object) -> Schedule:
    match stored:
        case {"kind": "every", "interval_us": int(interval), **rest} if not rest:
            return Every(_timedelta(interval))
        case {"kind": "cron", "expression": str(expression), "tz": str(tz), **rest} if not rest:
            return Cron(expression, tz)
        case {"kind": "once", "at": str(at), **rest} if not rest:
            return Once(_datetime(at), None)
        case {"kind": "once", "after_us": int(after), **rest} if not rest:
            return Once(None, _timedelta(after))
        case {"kind": "dependent" | "dormant" as kind, "parent": str(parent), **rest} if not rest:
            return Dependent(parent) if kind == "dependent" else Dormant(parent)
        case {"kind": "manual", **rest} if not rest:
            return Manual()
    raise InvalidSchedule(found=stored, problem="is not a stored schedule", hint=_NEWER)


def encode_exclusions(exclusions: Sequence[Exclusion]) -> list[dict[str, object]]:
    return [_encode_exclusion(exclusion) for exclusion in exclusions]


def decode_exclusions(stored: object) -> list[Exclusion]:
    if not isinstance(stored, list):
        raise InvalidSchedule(found=stored, problem="is not a list of exclusions")
    return [_decode_exclusion(exclusion) for exclusion in stored]


def _encode_exclusion(exclusion: Exclusion) -> dict[str, object]:
    match exclusion:
        case Weekdays(names):
            return {"kind": "weekdays", "names": list(names)}
        case Dates(days):
            return {"kind": "dates", "dates": [day.isoformat() for day in days]}
        case DateRange(first, last):
            return {"kind": "date_range", "first": first.isoformat(), "last": last.isoformat()}
        case Window(start, end):
            return {"kind": "window", "start": start.isoformat(), "end": end.isoformat()}
        case _:
            assert_never(exclusion)


def _decode_exclusion(stored: object) -> Exclusion:
    match stored:
        case {"kind": "weekdays", "names": list(names), **rest} if not rest:
            return exclude.weekdays(*names)
        case {"kind": "dates", "dates": list(dates), **rest} if not rest:
            return exclude.dates(*dates)
        case {"kind": "date_range", "first": str(first), "last": str(last), **rest} if not rest:
            return exclude.date_range(first, last)
        case {"kind": "window", "start": str(start), "end": str(end), **rest} if not rest:
            return exclude.window(start, end)
    raise InvalidSchedule(found=stored, problem="is not a stored exclusion", hint=_NEWER)


def _microseconds(duration: timedelta | None) -> int:
    return (duration or timedelta(0)) // _MICROSECOND


def _timedelta(microseconds: int) -> timedelta:
    try:
        return timedelta(microseconds=microseconds)
    except OverflowError as error:
        raise InvalidSchedule(found=microseconds, problem="is too long") from error


def _datetime(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidSchedule(found=text, problem="is not an ISO 8601 instant") from error
