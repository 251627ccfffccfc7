"""What an edit does to a plan: nothing that is due is lost, nothing runs twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.model.exclusion import exclude
from interlock.model.plan import Plan, replan
from interlock.model.schedule import Dependent, Dormant, Manual, cron, every, once

NOON = datetime(2024, 5, 7, 12, tzinfo=UTC)  # a Tuesday
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def edited(schedule, plan, previous, *, exclusions=(), variance=timedelta(0), now=NOON):
    rules = {"exclusions": exclusions, "tz": "UTC", "variance": variance, "random": lambda: 0.5}
    return replan(schedule, plan, previous=previous, now=now, **rules)


@pytest.mark.parametrize(
    ("interval", "expected"),
    [(2 * HOUR, 90 * MINUTE), (HOUR, 30 * MINUTE), (10 * MINUTE, 10 * MINUTE), (7 * MINUTE, 5 * MINUTE)],
)
def test_an_interval_goes_on_from_where_it_stood(interval, expected):
    new = every(seconds=interval.total_seconds())
    assert edited(new, Plan(NOON + 30 * MINUTE), every(hours=1)) == Plan(NOON + expected)


@given(old=st.integers(1, 5000), new=st.integers(1, 5000), ahead=st.integers(1, 10_000))
def test_an_edited_interval_fires_within_one_new_interval_and_not_before_now(old, new, ahead):
    plan = edited(every(minutes=new), Plan(NOON + ahead * MINUTE), every(minutes=old))
    assert NOON < plan.nominal <= NOON + new * MINUTE


@pytest.mark.parametrize("schedule", [every(hours=5), every(hours=1), cron("0 4 * * *"), cron("@daily")])
@pytest.mark.parametrize("previous", [every(hours=1), cron("@daily")])
def test_what_is_due_stays_due(schedule, previous):
    due = Plan(NOON - MINUTE, 3 * MINUTE)
    assert edited(schedule, due, previous) == due


def test_a_new_exclusion_moves_a_plan_out_of_it_and_a_removed_one_lets_it_back():
    afternoon = [exclude.window("12:00", "18:00")]
    moved = edited(every(hours=1), Plan(NOON + 30 * MINUTE), every(hours=1), exclusions=afternoon)
    assert moved == Plan(NOON + 6 * HOUR + 30 * MINUTE)
    assert edited(every(hours=1), moved, every(hours=1)) == Plan(NOON + 30 * MINUTE)
    assert edited(cron("30 * * * *"), moved, cron("30 * * * *")) == Plan(NOON + 30 * MINUTE)


@pytest.mark.parametrize("weeks", [1, 2])
def test_an_interval_whose_whole_grid_is_excluded_by_an_edit_goes_on_where_the_exclusion_ends(weeks):
    saturday, monday = NOON + timedelta(days=4), datetime(2024, 5, 13, tzinfo=UTC)
    weekend = [exclude.weekdays("sat", "sun")]
    assert edited(every(weeks=weeks), Plan(saturday), every(weeks=weeks), exclusions=weekend) == Plan(monday)


def test_a_new_variance_is_drawn_for_the_same_fire():
    planned = Plan(NOON + 30 * MINUTE)
    assert edited(every(hours=1), planned, every(hours=1), variance=10 * MINUTE) == Plan(planned.nominal, 5 * MINUTE)


def test_a_single_run_that_is_over_stays_over_and_a_new_time_is_a_new_run():
    past, later = once(at=NOON - HOUR), once(at=NOON + HOUR)
    assert edited(past, None, past, variance=MINUTE) is None
    assert edited(later, None, past) == Plan(NOON + HOUR)
    assert edited(later, Plan(NOON + 2 * HOUR), once(at=NOON + 2 * HOUR)) == Plan(NOON + HOUR)


def test_a_schedule_of_another_type_starts_anew():
    assert edited(every(hours=1), Plan(NOON + HOUR), cron("@daily")) == Plan(NOON)
    assert edited(cron("@daily"), Plan(NOON + MINUTE), every(hours=1)) == Plan(NOON + 12 * HOUR)
    assert edited(every(hours=1), None, Manual()) == Plan(NOON)


@pytest.mark.parametrize("schedule", [Manual(), Dependent("x"), Dormant("x")])
def test_what_has_no_time_of_its_own_has_no_plan(schedule):
    assert edited(schedule, Plan(NOON - HOUR), every(hours=1)) is None


def test_a_plan_that_exclusions_had_made_impossible_comes_back():
    always = [exclude.window("00:00", "12:00"), exclude.window("12:00", "00:00")]
    assert edited(every(hours=1), Plan(NOON + HOUR), every(hours=1), exclusions=always) is None
    assert edited(every(hours=1), None, every(hours=1)) == Plan(NOON)
