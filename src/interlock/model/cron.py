"""When a cron expression fires.

Which wall times an expression names is cronsim's answer, asked without a zone. What a clock change does to them is
decided here: asked with a zone, cronsim loses occurrences where the clock moves by half an hour, fires six-field
expressions twice in the repeated hour, and, started inside that hour, answers times before the start.

The rule is Debian's. A fixed hour and minute is an appointment: left out by the spring gap it fires right after the gap
(several left out together fire once), and in the repeated autumn hour it fires the first time only. An hour or minute
that begins with `*` is a rhythm: it fires whenever the clock on the wall matches, twice in the repeated hour.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from interlock.errors import InvalidSchedule
from interlock.model.wall_clock import (
    TICK,
    end_of_first_pass,
    first_instant_from,
    instants_showing,
    wall_time,
    zone_named,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_FIELDS = {
    "second": "0-59",
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31, L for the last day, LW for the last working day",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 (0 and 7 are Sunday) or SUN-SAT, 5L for the last Friday, MON#2 for the second Monday",
}
_SHAPE = "write 5 fields (minute hour day month weekday), 6 with seconds first, or one of " + ", ".join(ALIASES)
_SOME_DAY = datetime(2024, 1, 1)  # noqa: DTZ001  a wall time: expressions name wall times, zones come later


def checked_expression(expression: object) -> str:
    """The expression with its spacing made regular, or an error that names what is wrong with it."""
    if not isinstance(expression, str):
        raise InvalidSchedule(found=expression, problem="is not a cron expression", hint=_SHAPE)
    tidy = " ".join(expression.split())
    _six_fields(tidy)
    return tidy


def next_fire(expression: str, tz: str, after: datetime) -> datetime | None:
    """The first instant strictly after `after` at which the expression fires."""
    fields, zone = _six_fields(expression), zone_named(tz)
    if _is_appointment(fields):
        return _next_appointment(fields, zone, after)
    return _next_beat(fields, zone, after)


@lru_cache(maxsize=4096)
def _six_fields(expression: str) -> str:
    fields = ALIASES.get(expression.lower(), expression).split()
    if len(fields) not in (5, 6):
        problem = "is not a cron alias" if expression.startswith("@") else f"has {len(fields)} fields"
        raise InvalidSchedule(found=expression, problem=problem, hint=_SHAPE)
    if len(fields) == 5:  # noqa: PLR2004  the classic form, which fires on the full minute
        fields.insert(0, "0")
    _refuse_wrong_fields(expression, fields)
    return " ".join(fields)


def _refuse_wrong_fields(expression: str, fields: list[str]) -> None:
    for place, (name, allowed) in enumerate(_FIELDS.items()):
        alone = [field if position == place else "*" for position, field in enumerate(fields)]
        if not _is_parsed(alone):
            problem = f"the {name} field {fields[place]!r} is wrong"
            raise InvalidSchedule(found=expression, problem=problem, hint=f"it takes {allowed}")
    if not _is_parsed(fields) or next(_matches(" ".join(fields), _SOME_DAY), None) is None:
        problem = "never fires: no such day exists"
        raise InvalidSchedule(found=expression, problem=problem, hint="for the last day of a month write L")


def _is_parsed(fields: list[str]) -> bool:
    from cronsim import CronSimError  # noqa: PLC0415  only who uses cron pays for it

    try:
        _matches(" ".join(fields), _SOME_DAY)
    except (CronSimError, ValueError):
        return False
    return True


def _matches(fields: str, after: datetime) -> Iterator[datetime]:
    """The wall times after `after` that the expression names; ends when fifty years name none."""
    from cronsim import CronSim  # noqa: PLC0415  only who uses cron pays for it

    return CronSim(fields, after)


def _is_appointment(fields: str) -> bool:
    _, minute, hour, *_ = fields.split()
    return not minute.startswith("*") and not hour.startswith("*")


def _next_appointment(fields: str, zone: ZoneInfo, after: datetime) -> datetime | None:
    for wall in _matches(fields, wall_time(after, zone)):
        fire = first_instant_from(wall, zone)
        # In the repeated hour's second pass the wall still shows times whose appointment was kept in the first.
        if fire > after:
            return fire
    return None


def _next_beat(fields: str, zone: ZoneInfo, after: datetime) -> datetime | None:
    wall = wall_time(after, zone)
    fire = _first_beat(fields, zone, wall, after)
    change = end_of_first_pass(after, zone)
    if change is None or (fire is not None and fire < change):
        return fire
    # The wall clock is about to go back: what it shows next lies before what it shows now.
    return _first_beat(fields, zone, wall_time(change, zone) - timedelta(seconds=1), change - TICK)


def _first_beat(fields: str, zone: ZoneInfo, wall: datetime, after: datetime) -> datetime | None:
    showing = (at for match in _matches(fields, wall) for at in instants_showing(match, zone))
    return next((at for at in showing if at > after), None)
