"""When a manifest fires next, and whether it still may when that time has come.

A plan is stored, so that every server and every cycle sees the same time. Its nominal time lies on the schedule's own
grid and names the fire; the offset is drawn once and only ever delays. The next plan is counted from the nominal time,
so intervals do not drift, and lies after now, so an outage of any length costs one fire, not a burst.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from interlock.errors import InvalidSchedule
from interlock.model.exclusion import HORIZON, is_excluded, next_allowed
from interlock.model.schedule import Cron, Dependent, Dormant, Every, Manual, Once, next_occurrence, single_time
from interlock.model.schedule_text import describe
from interlock.model.wall_clock import TICK, instant, zone_named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from interlock.model.exclusion import Exclusion
    from interlock.model.schedule import Schedule

DEFAULT_MISFIRE_THRESHOLD = timedelta(seconds=60)
_A_YEAR = timedelta(days=366)  # in which an interval meets every weekday and both clock changes
_FEW = 10  # one leap day in nine, at the latest, falls on a given weekday, also around a century without one


class Misfire(StrEnum):
    """What to do with a fire that comes later than the threshold."""

    FIRE_ONCE = "fire_once"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Plan:
    nominal: datetime
    offset: timedelta = timedelta(0)

    @property
    def planned_at(self) -> datetime:
        return instant(self.nominal) + self.offset


@dataclass(frozen=True, slots=True)
class Fire:
    nominal: datetime
    next: Plan | None


@dataclass(frozen=True, slots=True)
class Skip:
    reason: Literal["excluded", "misfire"]
    nominal: datetime
    missed_by: timedelta
    next: Plan | None


Decision = Fire | Skip


def first_plan(
    schedule: Schedule,
    *,
    now: datetime,
    exclusions: Sequence[Exclusion],
    tz: str,
    variance: timedelta,
    random: Callable[[], float],
) -> Plan | None:
    """The plan of a manifest that never ran: an interval at once, cron at its next occurrence."""
    now = instant(now)
    match schedule:
        case Every():
            nominal = _first_allowed(schedule, now - TICK, now, exclusions, tz)
        case Once():
            nominal = single_time(schedule, now)
        case _:
            nominal = _first_allowed(schedule, now, now, exclusions, tz)
    return None if nominal is None else _vary(schedule, nominal, exclusions, tz, variance, random)


def plan_after(
    schedule: Schedule,
    previous: Plan,
    *,
    now: datetime,
    exclusions: Sequence[Exclusion],
    tz: str,
    variance: timedelta,
    random: Callable[[], float],
) -> Plan | None:
    """The plan that follows one that was handled; what was missed until now is left out."""
    if isinstance(schedule, Once):
        return None
    anchor = instant(previous.nominal)
    nominal = _first_allowed(schedule, max(anchor, instant(now)), anchor, exclusions, tz)
    return None if nominal is None else _vary(schedule, nominal, exclusions, tz, variance, random)


def replan(
    schedule: Schedule,
    current: Plan | None,
    *,
    previous: Schedule,
    now: datetime,
    exclusions: Sequence[Exclusion],
    tz: str,
    variance: timedelta,
    random: Callable[[], float],
) -> Plan | None:
    """The plan after an edit. What is due stays due, a single run that is over stays over, and an interval goes on
    from where it stood: only a schedule of another type starts anew.
    """
    now = instant(now)
    if isinstance(schedule, Once) and schedule == previous:
        return current
    if current is not None and isinstance(schedule, Every | Cron) and isinstance(previous, Every | Cron):
        if current.nominal <= now:
            return current
        if type(schedule) is type(previous):
            nominal = _first_allowed(schedule, now, _last_before(previous, current, now), exclusions, tz)
            return None if nominal is None else _vary(schedule, nominal, exclusions, tz, variance, random)
    return first_plan(schedule, now=now, exclusions=exclusions, tz=tz, variance=variance, random=random)


def _last_before(schedule: Every | Cron, plan: Plan, now: datetime) -> datetime:
    """Where an interval stood last; cron needs no anchor."""
    if isinstance(schedule, Cron):
        return now
    nominal = instant(plan.nominal)
    return nominal - -((now - nominal) // schedule.interval) * schedule.interval


def decide(
    schedule: Schedule,
    plan: Plan,
    *,
    now: datetime,
    exclusions: Sequence[Exclusion],
    tz: str,
    misfire: Misfire,
    threshold: timedelta,
    variance: timedelta,
    random: Callable[[], float],
) -> Decision:
    """What becomes of a plan whose time has come."""
    late = instant(now) - instant(plan.planned_at)
    following = plan_after(schedule, plan, now=now, exclusions=exclusions, tz=tz, variance=variance, random=random)
    if is_excluded(exclusions, tz, now) or is_excluded(exclusions, tz, plan.nominal):
        return Skip("excluded", plan.nominal, late, following)
    if misfire == Misfire.SKIP and late > threshold:
        return Skip("misfire", plan.nominal, late, following)
    return Fire(plan.nominal, following)


def check_schedule(
    schedule: Schedule,
    *,
    exclusions: Sequence[Exclusion],
    variance: timedelta,
    misfire_threshold: timedelta,
    tz: str | None,
) -> None:
    """Refuse options that contradict the schedule."""
    if tz is not None:
        zone_named(tz)
    _check_not_negative(variance, "variance")
    _check_not_negative(misfire_threshold, "misfire_threshold")
    if exclusions and isinstance(schedule, Once):
        hint = "choose another time, or remove the exclusions"
        raise InvalidSchedule(
            found=describe(schedule), problem="runs once, and an exclusion would lose that run", hint=hint
        )
    if variance and isinstance(schedule, Dependent | Dormant | Manual):
        problem = "has no planned time that a variance could delay"
        raise InvalidSchedule(found=describe(schedule), problem=problem, hint="remove variance=")
    if isinstance(schedule, Every) and variance >= schedule.interval:
        problem = f"is no longer than its variance of {variance}, so that runs could change places"
        raise InvalidSchedule(found=describe(schedule), problem=problem, hint="choose a variance below the interval")
    refuse_never(schedule, exclusions, tz or "UTC")


def refuse_never(schedule: Schedule, exclusions: Sequence[Exclusion], tz: str) -> None:
    """Refuse exclusions that leave no time to run; what only a person or a train starts needs none.

    The clock of this computer decides here, not the database's: over five years the difference does not matter.
    """
    if exclusions and not isinstance(schedule, Once | Dormant | Manual) and not _ever_allowed(schedule, exclusions, tz):
        problem = "would never run, because its exclusions cover all its times of the next five years"
        raise InvalidSchedule(
            found=describe(schedule), problem=problem, hint="narrow one of the exclusions, or remove it"
        )


def _ever_allowed(schedule: Schedule, exclusions: Sequence[Exclusion], tz: str) -> bool:
    now = datetime.now(UTC)
    if isinstance(schedule, Cron):
        return _first_allowed(schedule, now, now, exclusions, tz) is not None
    return next_allowed(exclusions, tz, now) is not None


def _check_not_negative(found: object, name: str) -> None:
    if not isinstance(found, timedelta) or found < timedelta(0):
        raise InvalidSchedule(found=found, problem=f"cannot be the {name}", hint="write a timedelta of zero or more")


def _first_allowed(
    schedule: Schedule, after: datetime, anchor: datetime, exclusions: Sequence[Exclusion], tz: str
) -> datetime | None:
    """The first occurrence after `after` that nothing excludes, going from exclusion to exclusion.

    It is looked for within the horizon, and beyond it among the first few: leap days, for example, lie years apart.
    The grid of an interval that never leaves an exclusion (weekly, on a Saturday) goes on from where that ends.
    """
    horizon, looked_at = after + (_A_YEAR if isinstance(schedule, Every) else HORIZON), 0
    first = nominal = next_occurrence(schedule, after, anchor)
    while nominal is not None and exclusions and (nominal <= horizon or looked_at < _FEW):
        allowed = next_allowed(exclusions, tz, nominal)
        if allowed == nominal:
            return nominal
        nominal = None if allowed is None else next_occurrence(schedule, allowed - TICK, anchor)
        looked_at += 1
    if not exclusions:
        return nominal
    return next_allowed(exclusions, tz, first) if first is not None and isinstance(schedule, Every) else None


def _vary(
    schedule: Schedule,
    nominal: datetime,
    exclusions: Sequence[Exclusion],
    tz: str,
    variance: timedelta,
    random: Callable[[], float],
) -> Plan:
    """The plan with its delay drawn: short of the following occurrence, and none if it would lead into an exclusion."""
    if not variance:
        return Plan(nominal)
    following = None if isinstance(schedule, Once) else next_occurrence(schedule, nominal, nominal)
    longest = variance if following is None else min(variance, following - nominal - TICK)
    offset = longest * random()
    return Plan(nominal) if is_excluded(exclusions, tz, nominal + offset) else Plan(nominal, offset)
