"""The coming fires of manifests, as plan and schedule have them, with what the clock and exclusions do to them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from heapq import merge
from typing import TYPE_CHECKING, assert_never

from interlock.errors import InvalidSchedule
from interlock.model.exclusion import DateRange, Dates, Weekdays, Window, is_excluded, next_allowed
from interlock.model.schedule import Cron, next_occurrence
from interlock.model.schedule_json import decode_exclusions, decode_schedule
from interlock.model.wall_clock import TICK, instants_showing, wall_time, zone_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from interlock.model.exclusion import Exclusion
    from interlock.model.reading import ManifestPlan
    from interlock.model.schedule import Schedule

_TWICE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One time of a schedule. Of a row of excluded times only the first is named, with when fires begin again."""

    external_id: str
    at: datetime
    zone: str
    local: datetime
    fires: bool
    marks: tuple[str, ...]


def coming_fires(plans: Iterable[ManifestPlan], count: int) -> list[Occurrence]:
    """The next so many fires of all these manifests together, with the exclusions between them."""
    found: list[Occurrence] = []
    for occurrence in merge(*map(occurrences, plans), key=lambda each: each.at):
        found.append(occurrence)
        count -= occurrence.fires
        if count <= 0:
            break
    return found


def occurrences(plan: ManifestPlan) -> Iterator[Occurrence]:
    """From the stored plan on, without end for a schedule without end; none of a schedule that cannot be read."""
    try:
        schedule, exclusions = decode_schedule(plan.schedule), decode_exclusions(plan.exclusions)
    except InvalidSchedule:
        return
    if plan.planned_at is None:
        return
    zone = schedule.tz if isinstance(schedule, Cron) else plan.time_zone
    nominal = plan.planned_at - plan.planned_offset
    yield _occurrence(plan, plan.planned_at, zone, exclusions, _of_the_plan(plan))
    for at in _after(schedule, nominal, plan.now, exclusions, plan.time_zone):
        yield _occurrence(plan, at, zone, exclusions, ())


def _after(
    schedule: Schedule, nominal: datetime, now: datetime, exclusions: Sequence[Exclusion], tz: str
) -> Iterator[datetime]:
    anchor, after = nominal, max(nominal, now)
    while (following := next_occurrence(schedule, after, anchor)) is not None:
        yield following
        after = following
        if is_excluded(exclusions, tz, following):
            allowed = next_allowed(exclusions, tz, following)
            if allowed is None:
                return
            after = allowed - TICK


def _of_the_plan(plan: ManifestPlan) -> tuple[str, ...]:
    marks = []
    if plan.planned_at is not None and plan.planned_at < plan.now:
        marks.append("overdue")
    if plan.planned_offset:
        marks.append(f"delayed by {plan.planned_offset.total_seconds():.3g} s of variance")
    return tuple(marks)


def _occurrence(
    plan: ManifestPlan, at: datetime, zone: str, exclusions: Sequence[Exclusion], marks: tuple[str, ...]
) -> Occurrence:
    excluded = is_excluded(exclusions, plan.time_zone, at)
    out = () if excluded is None else (f"excluded: {describe_exclusion(excluded)}",)
    return Occurrence(
        external_id=plan.external_id,
        at=at,
        zone=zone,
        local=at.astimezone(zone_named(zone)),
        fires=excluded is None,
        marks=(*marks, *_held_back_by(plan), *out, *_clock_changes(at, zone_named(zone))),
    )


def _held_back_by(plan: ManifestPlan) -> Iterator[str]:
    """What keeps it from being queued at all of its times, until a person decides."""
    if not plan.enabled:
        yield "manifest disabled"
    if not plan.group_enabled:
        yield "group disabled"
    if plan.dead_letter_id is not None:
        yield f"dead letter {plan.dead_letter_id} blocks it"
    if plan.paused:
        yield "paused"


def _clock_changes(at: datetime, zone: ZoneInfo) -> tuple[str, ...]:
    """What the clocks of the zone do at this time: a gap ends here, or the hour is shown twice."""
    before, here = ((at - TICK).astimezone(zone).utcoffset(), at.astimezone(zone).utcoffset())
    if (here or timedelta()) > (before or timedelta()):
        return ("clocks go forward: the times in the gap run now",)
    shown = instants_showing(wall_time(at, zone), zone)
    if len(shown) == _TWICE:
        return ("clocks go back: this hour comes twice",)
    return ()


def describe_exclusion(exclusion: Exclusion) -> str:
    match exclusion:
        case Weekdays(names):
            return ", ".join(names)
        case Dates(days):
            return ", ".join(day.isoformat() for day in days)
        case DateRange(first, last):
            return f"{first.isoformat()} to {last.isoformat()}"
        case Window(start, end):
            return f"{start:%H:%M} to {end:%H:%M}"
        case _:
            assert_never(exclusion)
