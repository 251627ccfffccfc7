"""Schedules in words, for people."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, assert_never

from interlock.model.schedule import Cron, Dependent, Dormant, Every, Manual, Once

if TYPE_CHECKING:
    from interlock.model.schedule import Schedule

_UNITS = {
    "week": timedelta(weeks=1),
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
    "millisecond": timedelta(milliseconds=1),
    "microsecond": timedelta(microseconds=1),
}


def describe(schedule: Schedule) -> str:
    match schedule:
        case Every(interval):
            return "every " + (_words(interval).removeprefix("1 ") if interval in _UNITS.values() else _words(interval))
        case Cron(expression, tz):
            return f"cron {expression} ({tz})"
        case Once():
            return _describe_once(schedule)
        case Dependent(parent):
            return f"after {parent}"
        case Dormant(parent):
            return f"when {parent} activates it"
        case Manual():
            return "only when triggered"
        case _:
            assert_never(schedule)


def _describe_once(schedule: Once) -> str:
    if schedule.at is not None:
        return f"once at {schedule.at:%Y-%m-%d %H:%M:%S} UTC"
    return f"once, {_words(schedule.after or timedelta(0))} after it was declared"


def _words(duration: timedelta) -> str:
    words = []
    for name, unit in _UNITS.items():
        count, duration = divmod(duration, unit)
        if count:
            words.append(f"{count} {name}" if count == 1 else f"{count} {name}s")
    return " ".join(words) or "0 seconds"
