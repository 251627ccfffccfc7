"""Plans walked over clock changes by ticks at random times: nothing fires twice, nothing is lost."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.model import plan as plan_module
from interlock.model.exclusion import exclude
from interlock.model.plan import Fire, Misfire, Plan, decide, first_plan
from interlock.model.schedule import Every, cron, every, once

if TYPE_CHECKING:
    from interlock.model.schedule import Schedule

CHANGES = {
    "Europe/Berlin": [datetime(2024, 3, 31, 1, tzinfo=UTC), datetime(2024, 10, 27, 1, tzinfo=UTC)],
    "America/New_York": [datetime(2024, 3, 10, 7, tzinfo=UTC), datetime(2024, 11, 3, 6, tzinfo=UTC)],
    "Australia/Lord_Howe": [datetime(2024, 10, 5, 15, 30, tzinfo=UTC), datetime(2024, 4, 6, 15, tzinfo=UTC)],
    "UTC": [datetime(2024, 2, 29, tzinfo=UTC)],
}
EXCLUSIONS = [
    [],
    [exclude.window("22:00", "01:45")],
    [exclude.window("02:15", "03:30"), exclude.weekdays("mon")],
    [exclude.weekdays("sun")],
]
# Each with how to tell an occurrence from its wall time alone.
RHYTHMS = {
    "*/15 * * * *": lambda wall: wall.minute % 15 == 0 and wall.second == 0,
    "0 */10 * * * *": lambda wall: wall.minute % 10 == 0 and wall.second == 0,
    "0 * * * *": lambda wall: wall.minute == 0 and wall.second == 0,
}
NO_TIME, MINUTE = timedelta(0), timedelta(minutes=1)


def replay(schedule, begin, ticks, *, exclusions, tz, variance=NO_TIME, misfire=Misfire.FIRE_ONCE, draw=lambda: 0.5):
    """What a manager sees that wakes at these instants: a decision for every tick at which the plan was due."""
    rules = {"exclusions": exclusions, "tz": tz, "variance": variance, "random": draw}
    plan, decisions = first_plan(schedule, now=begin, **rules), []
    for now in ticks:
        if plan is not None and plan.planned_at <= now:
            decision = decide(schedule, plan, now=now, misfire=misfire, threshold=MINUTE, **rules)
            decisions.append((plan, now, decision))
            plan = decision.next
    return decisions


def fired(decisions) -> list[datetime]:
    return [decision.nominal for _, _, decision in decisions if isinstance(decision, Fire)]


def wall(at: datetime, tz: str) -> datetime:
    return at.astimezone(ZoneInfo(tz)).replace(tzinfo=None, fold=0)


def allowed(exclusions, tz: str, at: datetime) -> bool:
    return not any(exclusion.covers(wall(at, tz)) for exclusion in exclusions)


@st.composite
def tick_times(draw, longest: timedelta, hours: int = 30):
    """A zone, a clock change of it, a start before it, and instants at most `longest` apart."""
    tz = draw(st.sampled_from(sorted(CHANGES)))
    begin = draw(st.sampled_from(CHANGES[tz])) - timedelta(hours=draw(st.integers(1, hours - 6)))
    begin += timedelta(microseconds=draw(st.integers(0, 3_600_000_000)))
    pauses = draw(st.lists(st.floats(0.01, 1), min_size=5, max_size=40))
    ticks, at = [], begin
    while at < begin + timedelta(hours=hours):
        ticks.append(at)
        at += longest * pauses[len(ticks) % len(pauses)]
    return tz, begin, ticks


@settings(deadline=None, max_examples=80)
@given(
    world=tick_times(timedelta(hours=3)),
    schedule=st.sampled_from([*RHYTHMS, "30 2 * * *", "15,45 1,2,3 * * *", "0 0 2 * * *"]).map(str)
    | st.timedeltas(min_value=timedelta(minutes=7), max_value=timedelta(hours=9)),
    exclusions=st.sampled_from(EXCLUSIONS),
    variance=st.sampled_from([NO_TIME, timedelta(minutes=5)]),
    misfire=st.sampled_from(Misfire),
    random=st.randoms(use_true_random=False),
)
def test_no_tick_pattern_fires_twice_early_or_inside_an_exclusion(
    world, schedule, exclusions, variance, misfire, random
):
    tz, begin, ticks = world
    made: Schedule = cron(schedule, tz=tz) if isinstance(schedule, str) else Every(schedule)
    options = {"exclusions": exclusions, "tz": tz, "variance": variance, "misfire": misfire, "draw": random.random}
    decisions = replay(made, begin, ticks, **options)
    nominals = [plan.nominal for plan, _, _ in decisions]
    assert all(earlier < later for earlier, later in itertools.pairwise(nominals))
    for plan, now, decision in decisions:
        assert plan.nominal <= plan.planned_at <= now
        if isinstance(decision, Fire):
            assert allowed(exclusions, tz, plan.nominal)
            assert allowed(exclusions, tz, now)
            assert misfire is Misfire.FIRE_ONCE or now - plan.planned_at <= MINUTE
        if decision.next is not None:
            assert decision.next.nominal > now


@settings(deadline=None, max_examples=60)
@given(world=tick_times(timedelta(minutes=9)), expression=st.sampled_from(sorted(RHYTHMS)))
def test_a_rhythm_loses_nothing_when_ticks_come_faster_than_it_beats(world, expression: str):
    tz, begin, ticks = world
    minutes = (begin.replace(second=0, microsecond=0) + count * MINUTE for count in range(1, 60 * 48))
    expected = [at for at in minutes if at <= ticks[-1] and RHYTHMS[expression](wall(at, tz))]
    assert fired(replay(cron(expression, tz=tz), begin, ticks, exclusions=[], tz=tz)) == expected


@settings(deadline=None, max_examples=60)
@given(
    world=tick_times(timedelta(minutes=9)),
    interval=st.timedeltas(min_value=timedelta(minutes=15), max_value=timedelta(hours=3)),
    random=st.randoms(use_true_random=False),
)
def test_an_interval_with_variance_loses_nothing_when_ticks_come_faster(world, interval: timedelta, random):
    tz, begin, ticks = world
    decisions = replay(Every(interval), begin, ticks, exclusions=[], tz=tz, variance=5 * MINUTE, draw=random.random)
    assert fired(decisions) == [begin + count * interval for count in range(len(decisions))]
    assert len(decisions) >= (ticks[-1] - begin - 5 * MINUTE) // interval


@settings(deadline=None, max_examples=60)
@given(world=tick_times(MINUTE / 2, hours=20), exclusions=st.sampled_from(EXCLUSIONS), count=st.integers(1, 90))
def test_every_grid_point_outside_the_exclusions_fires(world, exclusions, count: int):
    tz, begin, ticks = world
    interval = count * MINUTE
    decisions = replay(Every(interval), begin, ticks, exclusions=exclusions, tz=tz)
    skipped = {plan.nominal for plan, _, decision in decisions if not isinstance(decision, Fire)}
    grid = [begin + step * interval for step in range((ticks[-1] - begin) // interval + 1)]
    expected = [at for at in grid if allowed(exclusions, tz, at) and at not in skipped]
    assert fired(decisions) == expected
    # Only a tick that came late, into an exclusion, may skip a grid point that was allowed.
    late = {plan.nominal: now for plan, now, _ in decisions}
    assert all(not allowed(exclusions, tz, late[nominal]) for nominal in skipped)


@pytest.mark.parametrize("tz", sorted(CHANGES))
def test_a_daily_cron_fires_once_on_each_day_of_a_leap_year(tz: str):
    zone = ZoneInfo(tz)
    begin, end = datetime(2024, 1, 1, tzinfo=zone).astimezone(UTC), datetime(2025, 1, 1, tzinfo=zone).astimezone(UTC)
    ticks = [begin + count * timedelta(minutes=20) for count in range((end - begin) // timedelta(minutes=20))]
    days = [
        at.astimezone(zone).date()
        for at in fired(replay(cron("30 2 * * *", tz=tz), begin, ticks, exclusions=[], tz=tz))
    ]
    assert len(days) == len(set(days)) == 366


def test_the_same_tick_decided_twice_names_the_same_fire():
    rules = {"exclusions": [], "tz": "UTC", "variance": NO_TIME, "random": lambda: 0.5}
    now = datetime(2024, 10, 27, 1, 30, tzinfo=UTC)
    plan = Plan(now - 7 * MINUTE)
    once, again = (
        decide(every(minutes=5), plan, now=now, misfire=Misfire.FIRE_ONCE, threshold=MINUTE, **rules) for _ in range(2)
    )
    assert once == again == Fire(plan.nominal, Plan(plan.nominal + 10 * MINUTE))


def test_control_a_plan_that_ignores_the_previous_one_fires_it_again(monkeypatch):
    begin = datetime(2024, 10, 27, tzinfo=UTC)
    ticks = [begin + count * MINUTE for count in range(120)]
    sound = fired(replay(every(minutes=7), begin, ticks, exclusions=[], tz="UTC"))
    assert len(sound) == len(set(sound))
    monkeypatch.setattr(plan_module, "plan_after", lambda _schedule, previous, **_: replace(previous))
    broken = fired(replay(every(minutes=7), begin, ticks, exclusions=[], tz="UTC"))
    assert len(broken) > len(set(broken))


@settings(deadline=None, max_examples=60)
@given(
    world=tick_times(timedelta(hours=2)),
    away=st.timedeltas(min_value=timedelta(hours=-5), max_value=timedelta(hours=20)),
    variance=st.sampled_from([NO_TIME, timedelta(minutes=5)]),
    misfire=st.sampled_from(Misfire),
)
def test_a_single_run_over_a_clock_change_comes_once_and_is_dropped_only_when_late_and_told_to(
    world, away, variance, misfire
):
    tz, begin, ticks = world
    at = begin + away
    first_seen = next((now for now in ticks if now >= at + variance / 2), None)
    late = first_seen is not None and first_seen - at - variance / 2 > MINUTE
    dropped = misfire is Misfire.SKIP and late
    for schedule in (once(at=at), *([once(after=away)] if away >= NO_TIME else [])):
        decisions = replay(schedule, begin, ticks, exclusions=[], tz=tz, variance=variance, misfire=misfire)
        assert len(decisions) == (first_seen is not None)
        assert fired(decisions) == ([] if first_seen is None or dropped else [at])
