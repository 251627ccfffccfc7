"""What a wall clock somewhere shows, and when it shows it.

Instants are UTC; wall times are naive. Where a zone moves its clock, a wall time is shown once, twice (the repeated
hour in autumn) or never (the gap in spring). Arithmetic on local datetimes hides this, so nothing else does any.
"""

from __future__ import annotations

from datetime import UTC, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from interlock.errors import InvalidSchedule

if TYPE_CHECKING:
    from datetime import datetime
    from zoneinfo import ZoneInfo

TICK = timedelta(microseconds=1)
_SECOND = timedelta(seconds=1)

# These name whatever the machine is set to, so that two servers would disagree about one manifest.
_MACHINE_DEPENDENT = frozenset({"localtime", "posixrules"})


def zone_named(name: object) -> ZoneInfo:
    if not isinstance(name, str) or not name:
        raise InvalidSchedule(found=name, problem="is not the name of a time zone", hint="write for example 'UTC'")
    return _zone(name)


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo  # noqa: PLC0415  only who schedules pays for the zone database

    if name in _MACHINE_DEPENDENT:
        raise InvalidSchedule(found=name, problem="is a different zone on every machine", hint="name the zone itself")
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:
        raise InvalidSchedule(found=name, problem="is not a known time zone", hint=_similar_zones(name)) from error


def _similar_zones(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  only a mistake needs it
    from zoneinfo import available_timezones  # noqa: PLC0415  only a mistake needs it

    by_lower_case = {zone.lower(): zone for zone in available_timezones()}
    similar = [by_lower_case[zone] for zone in get_close_matches(name[:60].lower(), by_lower_case, n=3)]
    return f"did you mean {' or '.join(similar)}?" if similar else "write for example 'UTC' or 'Europe/Berlin'"


def instant(at: datetime) -> datetime:
    """`at` in UTC, the only form in which instants are compared and added to."""
    if at.tzinfo is None:
        raise InvalidSchedule(found=at, problem="has no time zone", hint="write datetime(..., tzinfo=UTC)")
    return at.astimezone(UTC)


def wall_time(at: datetime, zone: ZoneInfo) -> datetime:
    return at.astimezone(zone).replace(tzinfo=None, fold=0)


def instants_showing(wall: datetime, zone: ZoneInfo) -> tuple[datetime, ...]:
    """Every instant at which clocks of the zone show `wall`: two in a repeated hour, none in a gap."""
    earlier, later = _readings(wall, zone)
    if earlier == later:
        return (earlier,)
    return (earlier, later) if earlier < later else ()


def first_instant_from(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first instant at which clocks of the zone show `wall`, or the end of the gap that leaves it out."""
    after_gap, before_gap = _readings(wall, zone)
    return after_gap if after_gap <= before_gap else clock_change_between(before_gap, after_gap, zone)


def _readings(wall: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    return (
        wall.replace(tzinfo=zone, fold=0).astimezone(UTC),
        wall.replace(tzinfo=zone, fold=1).astimezone(UTC),
    )


def end_of_first_pass(at: datetime, zone: ZoneInfo) -> datetime | None:
    """The instant at which clocks go back, when `at` is in an hour that they are about to show again."""
    passes = instants_showing(wall_time(at, zone), zone)
    return None if at == passes[-1] else clock_change_between(passes[0], passes[-1], zone)


def same_offset(one: datetime, other: datetime, zone: ZoneInfo) -> bool:
    return one.astimezone(zone).utcoffset() == other.astimezone(zone).utcoffset()


def clock_change_between(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The instant at which the zone moves its clock, given two instants whose offsets differ because of it."""
    before, after = before.replace(microsecond=0), (after + _SECOND - TICK).replace(microsecond=0)
    while after - before > _SECOND:
        middle = before + (after - before) // _SECOND // 2 * _SECOND
        if same_offset(before, middle, zone):
            before = middle
        else:
            after = middle
    return after
