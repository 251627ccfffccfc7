from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from interlock.errors import InvalidSchedule
from interlock.model import plan as plan_module
from interlock.model.exclusion import WEEKDAYS, exclude, next_allowed
from interlock.model.plan import Fire, Misfire, Plan, Skip, check_schedule, decide, first_plan, plan_after
from interlock.model.schedule import Dependent, Dormant, Manual, cron, every, next_occurrence, once

NOON = datetime(2024, 5, 7, 12, tzinfo=UTC)
SATURDAY = datetime(2024, 5, 4, 12, tzinfo=UTC)
MONDAY = datetime(2024, 5, 6, tzinfo=UTC)
HOUR, DAY, NONE = timedelta(hours=1), timedelta(days=1), timedelta(0)
WEEKEND = [exclude.weekdays("sat", "sun")]


def first(schedule, now=NOON, *, exclusions=(), tz="UTC", variance=NONE, random=lambda: 0.5):
    return first_plan(schedule, now=now, exclusions=exclusions, tz=tz, variance=variance, random=random)


def following(schedule, previous, now=None, *, exclusions=(), tz="UTC", variance=NONE, random=lambda: 0.5):
    now = previous.planned_at if now is None else now
    return plan_after(schedule, previous, now=now, exclusions=exclusions, tz=tz, variance=variance, random=random)


def decided(
    schedule, plan, now, *, misfire=Misfire.FIRE_ONCE, threshold=timedelta(seconds=60), exclusions=(), tz="UTC"
):
    return decide(
        schedule,
        plan,
        now=now,
        exclusions=exclusions,
        tz=tz,
        misfire=misfire,
        threshold=threshold,
        variance=NONE,
        random=lambda: 0.5,
    )


def test_an_interval_that_never_ran_fires_at_once():
    assert first(every(hours=1)) == Plan(NOON)


def test_a_cron_that_never_ran_waits_for_its_next_occurrence():
    assert first(cron("0 3 * * *")) == Plan(datetime(2024, 5, 8, 3, tzinfo=UTC))
    assert first(cron("0 12 * * *")) == Plan(NOON + DAY)


def test_once_fires_at_its_time_even_when_that_has_passed():
    assert first(once(at=NOON - DAY)) == Plan(NOON - DAY)
    assert first(once(at=NOON + DAY)) == Plan(NOON + DAY)
    assert first(once(after=HOUR)) == Plan(NOON + HOUR)


@pytest.mark.parametrize("schedule", [Dependent("extract"), Dormant("extract"), Manual()])
def test_what_waits_for_others_has_no_plan(schedule):
    assert first(schedule) is None
    assert following(schedule, Plan(NOON)) is None


def test_an_interval_first_stored_inside_an_exclusion_waits_for_its_first_allowed_grid_point():
    assert first(every(hours=5), SATURDAY, exclusions=WEEKEND) == Plan(SATURDAY + 8 * timedelta(hours=5))


def test_an_interval_whose_whole_grid_is_excluded_starts_where_the_exclusion_ends():
    weekly = first(every(weeks=1), SATURDAY, exclusions=WEEKEND)
    assert weekly == Plan(MONDAY)
    assert following(every(weeks=1), weekly, exclusions=WEEKEND) == Plan(MONDAY + 7 * DAY)


def test_an_interval_that_is_due_when_its_whole_grid_is_excluded_runs_again_where_the_exclusion_ends():
    plan = following(every(weeks=1), Plan(SATURDAY), now=SATURDAY, exclusions=WEEKEND)
    assert plan == Plan(MONDAY + 7 * DAY)
    assert following(every(weeks=1), plan, exclusions=WEEKEND) == Plan(MONDAY + 14 * DAY)


def test_whether_an_interval_leaves_an_exclusion_is_asked_of_one_year(monkeypatch):
    """A thousand of them, declared at night, are planned within the transaction of a start."""
    asked = []
    monkeypatch.setattr(plan_module, "next_allowed", lambda *rest: asked.append(rest) or next_allowed(*rest))
    assert first(every(days=1), NOON, exclusions=[exclude.window("11:00", "13:00")]) == Plan(NOON + HOUR)
    assert len(asked) < 370


def test_where_nothing_is_ever_allowed_there_is_no_plan():
    always = [exclude.weekdays(*WEEKDAYS)]
    assert first(every(hours=1), exclusions=always) is None
    assert first(cron("@daily"), exclusions=always) is None
    assert following(every(hours=1), Plan(NOON), exclusions=always) is None
    assert first(cron("0 3 * * *"), exclusions=[exclude.window("02:00", "04:00")]) is None


def test_intervals_do_not_drift_with_late_ticks():
    plan = Plan(NOON)
    for count in range(1, 50):
        plan = following(every(minutes=5), plan, plan.planned_at + timedelta(seconds=17))
        assert plan.nominal == NOON + count * timedelta(minutes=5)


def test_missed_occurrences_coalesce_into_one():
    now = NOON + 7 * HOUR + timedelta(minutes=20)
    assert following(every(hours=1), Plan(NOON), now) == Plan(NOON + 8 * HOUR)
    assert following(cron("0 * * * *"), Plan(NOON), now) == Plan(NOON + 8 * HOUR)


def test_a_plan_handled_early_is_not_planned_again():
    assert following(every(hours=1), Plan(NOON), NOON - timedelta(minutes=59)) == Plan(NOON + HOUR)
    assert following(cron("0 * * * *"), Plan(NOON), NOON - 3 * HOUR) == Plan(NOON + HOUR)


@pytest.mark.parametrize(
    ("schedule", "excluded", "expected"),
    [
        (cron("0 0 29 2 *"), ["sat", "sun"], datetime(2036, 2, 29, tzinfo=UTC)),
        (cron("0 0 29 2 *"), ["tue", "wed", "thu", "fri", "sat", "sun"], datetime(2044, 2, 29, tzinfo=UTC)),
        (every(days=2000), ["sun"], datetime(2033, 8, 21, tzinfo=UTC) + timedelta(days=2000)),
    ],
)
def test_an_occurrence_that_is_years_away_is_planned_though_the_one_before_is_excluded(schedule, excluded, expected):
    leap_day = Plan(datetime(2028, 2, 29, tzinfo=UTC))
    assert following(schedule, leap_day, exclusions=[exclude.weekdays(*excluded)]) == Plan(expected)


def test_a_week_long_exclusion_is_jumped_over_not_walked_through(monkeypatch):
    asked = []
    monkeypatch.setattr(
        plan_module, "next_occurrence", lambda *arguments: asked.append(1) or next_occurrence(*arguments)
    )
    week = [exclude.date_range("2024-05-08", "2024-05-14")]
    before = Plan(datetime(2024, 5, 7, 23, 59, 59, tzinfo=UTC))
    for schedule in (every(seconds=1), cron("* * * * * *")):
        assert following(schedule, before, exclusions=week) == Plan(datetime(2024, 5, 15, tzinfo=UTC))
    assert len(asked) == 4


def test_a_single_run_may_be_delayed_by_the_whole_variance_however_soon_it_is_planned():
    plan = first(once(after=timedelta(seconds=1)), variance=timedelta(minutes=10), random=lambda: 0.5)
    assert plan == Plan(NOON + timedelta(seconds=1), timedelta(minutes=5))


def test_the_offset_only_delays_and_stays_within_the_variance():
    for drawn in (0.0, 0.25, 0.999999, 1.0):
        plan = first(cron("0 * * * *"), variance=timedelta(minutes=10), random=lambda drawn=drawn: drawn)
        assert plan.nominal == NOON + HOUR
        assert plan.offset == drawn * timedelta(minutes=10)
        assert plan.planned_at == plan.nominal + plan.offset


def test_a_new_offset_is_drawn_for_every_occurrence_and_counted_from_the_grid():
    draws = iter([0.9, 0.1])
    plan = first(every(hours=1), variance=timedelta(minutes=10), random=lambda: next(draws))
    assert plan == Plan(NOON, timedelta(minutes=9))
    after = following(every(hours=1), plan, variance=timedelta(minutes=10), random=lambda: next(draws))
    assert after == Plan(NOON + HOUR, timedelta(minutes=1))


def test_the_offset_never_reaches_the_following_occurrence():
    plan = first(cron("0,1 * * * *"), variance=timedelta(minutes=30), random=lambda: 1.0)
    assert plan == Plan(NOON + timedelta(minutes=1), timedelta(minutes=30))
    plan = following(cron("0,1 * * * *"), plan, variance=timedelta(minutes=30), random=lambda: 1.0)
    assert plan.nominal == NOON + HOUR
    assert plan.planned_at == NOON + HOUR + timedelta(minutes=1) - timedelta(microseconds=1)


def test_an_offset_that_would_lead_into_an_exclusion_is_dropped():
    evening = [exclude.window("22:00", "06:00")]
    plan = first(cron("55 21 * * *"), exclusions=evening, variance=timedelta(minutes=20), random=lambda: 0.5)
    assert plan == Plan(datetime(2024, 5, 7, 21, 55, tzinfo=UTC))


def test_a_due_plan_fires_and_names_the_next():
    assert decided(every(hours=1), Plan(NOON), NOON) == Fire(NOON, Plan(NOON + HOUR))


def test_after_an_outage_fire_once_fires_a_single_time():
    now = NOON + 5 * HOUR + timedelta(minutes=1)
    decision = decided(cron("0 * * * *"), Plan(NOON), now)
    assert decision == Fire(NOON, Plan(NOON + 6 * HOUR))


@pytest.mark.parametrize("misfire", [Misfire.SKIP, "skip"])
def test_after_an_outage_skip_waits_for_the_next_occurrence(misfire):
    now = NOON + 5 * HOUR + timedelta(minutes=1)
    decision = decided(cron("0 * * * *"), Plan(NOON), now, misfire=misfire)
    assert decision == Skip("misfire", NOON, now - NOON, Plan(NOON + 6 * HOUR))


def test_skip_counts_from_the_planned_time_and_begins_beyond_the_threshold():
    plan, threshold = Plan(NOON, timedelta(minutes=3)), timedelta(seconds=60)
    on_the_edge = plan.planned_at + threshold
    assert isinstance(decided(every(hours=1), plan, on_the_edge, misfire=Misfire.SKIP), Fire)
    beyond = on_the_edge + timedelta(microseconds=1)
    skipped = decided(every(hours=1), plan, beyond, misfire=Misfire.SKIP)
    assert skipped == Skip("misfire", NOON, threshold + timedelta(microseconds=1), Plan(NOON + HOUR))


def test_a_late_fire_inside_an_exclusion_is_skipped_as_excluded_not_as_a_misfire():
    evening = [exclude.window("22:00", "06:00")]
    nominal, now = datetime(2024, 5, 7, 21, 59, tzinfo=UTC), datetime(2024, 5, 7, 22, 30, tzinfo=UTC)
    for misfire in Misfire:
        skipped = decided(every(hours=1), Plan(nominal), now, misfire=misfire, exclusions=evening)
        assert skipped == Skip("excluded", nominal, now - nominal, Plan(datetime(2024, 5, 8, 6, 59, tzinfo=UTC)))


def test_a_plan_that_an_edit_put_inside_an_exclusion_is_skipped():
    skipped = decided(every(hours=1), Plan(MONDAY - timedelta(minutes=1)), MONDAY, exclusions=WEEKEND)
    assert skipped == Skip(
        "excluded", MONDAY - timedelta(minutes=1), timedelta(minutes=1), Plan(MONDAY + timedelta(minutes=59))
    )


def test_once_has_no_next_whether_it_fired_or_was_skipped():
    schedule, late = once(at=NOON), NOON + DAY
    assert decided(schedule, Plan(NOON), late) == Fire(NOON, None)
    assert decided(schedule, Plan(NOON), late, misfire=Misfire.SKIP) == Skip("misfire", NOON, DAY, None)


NEVER = [exclude.weekdays("mon", "tue", "wed", "thu", "fri"), *WEEKEND]


def checked(schedule, *, exclusions=(), variance=NONE, misfire_threshold=NONE, tz=None):
    check_schedule(schedule, exclusions=exclusions, variance=variance, misfire_threshold=misfire_threshold, tz=tz)


@pytest.mark.parametrize(
    ("schedule", "options"),
    [
        (once(at=NOON), {"exclusions": WEEKEND}),
        (Dependent("extract"), {"variance": HOUR}),
        (Dormant("extract"), {"variance": HOUR}),
        (Manual(), {"variance": HOUR}),
        (every(hours=1), {"variance": -HOUR}),
        (every(hours=1), {"variance": HOUR}),
        (every(hours=1), {"variance": 5}),
        (every(hours=1), {"misfire_threshold": -HOUR}),
        (every(hours=1), {"misfire_threshold": None}),
        (every(hours=1), {"tz": "Nowhere"}),
        (every(hours=1), {"tz": ""}),
        (every(hours=1), {"exclusions": NEVER}),
        (cron("@daily"), {"exclusions": NEVER}),
        (Dependent("extract"), {"exclusions": NEVER}),
        (cron("0 3 * * sun"), {"exclusions": WEEKEND}),
        (
            cron("30 23 * * *", tz="Europe/Berlin"),
            {"exclusions": [exclude.window("22:00", "06:00")], "tz": "Europe/Berlin"},
        ),
        (every(hours=1), {"exclusions": [exclude.window("00:00", "12:00"), exclude.window("12:00", "00:00")]}),
        (every(hours=1), {"exclusions": [exclude.date_range("2000-01-01", "9999-12-31")]}),
    ],
)
def test_options_that_contradict_the_schedule_are_refused(schedule, options: dict):
    with pytest.raises(InvalidSchedule):
        checked(schedule, **options)


@pytest.mark.parametrize(
    ("schedule", "options"),
    [
        (once(at=NOON), {"variance": HOUR}),
        (Dependent("extract"), {"exclusions": WEEKEND, "tz": "Europe/Berlin"}),
        (every(hours=1), {"variance": HOUR - timedelta(microseconds=1), "exclusions": WEEKEND}),
        (cron("@daily"), {"variance": 2 * DAY, "misfire_threshold": HOUR}),
        (cron("0 3 * * sun"), {"exclusions": [exclude.weekdays("sat")]}),
        (every(weeks=1), {"exclusions": [exclude.weekdays("mon", "tue", "wed", "thu", "fri", "sat")]}),
        (Manual(), {"exclusions": NEVER}),
        (Dormant("extract"), {"exclusions": NEVER}),
    ],
)
def test_options_that_fit_the_schedule_are_accepted(schedule, options: dict):
    checked(schedule, **options)
