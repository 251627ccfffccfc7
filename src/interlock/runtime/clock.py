"""Whose time it is: the database's, unless a test injects its own.

SQL that looks at schedules, delays or ages takes the parameter `now` and reads `coalesce(:now, statement_timestamp())`.
Leases never look at it: they run on the database's real clock, and their local deadlines on the monotonic one, so a
test that moves time by a month loses no lease.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from interlock.errors import InvalidOption


class Clock(Protocol):
    def injected(self) -> datetime | None:
        """The time to use instead of the database's, or None."""
        ...

    def monotonic(self) -> float:
        """Seconds for local waits and deadlines; always real."""
        ...


class DatabaseClock:
    """Production: the database decides."""

    def injected(self) -> None:
        return None

    def monotonic(self) -> float:
        return time.monotonic()


class FakeClock:
    """Time that stands still until a test moves it."""

    def __init__(self, start: datetime) -> None:
        # In UTC, because adding hours to a local time adds them to the wall clock: a day may have 23 or 25.
        self.now = _checked_start(start).astimezone(UTC)

    def advance(self, by: timedelta) -> datetime:
        """Move time forward; answers the new now."""
        if not isinstance(by, timedelta):
            raise InvalidOption(option="by", found=by, expected="a timedelta, such as timedelta(hours=3)")
        if by < timedelta(0):
            raise InvalidOption(option="by", found=by, expected="zero or more: time does not run backwards")
        self.now += by
        return self.now

    def injected(self) -> datetime:
        return self.now

    def monotonic(self) -> float:
        return time.monotonic()


def _checked_start(found: object) -> datetime:
    if not isinstance(found, datetime) or found.tzinfo is None:
        raise InvalidOption(option="start", found=found, expected="a datetime with a time zone")
    return found
