from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from interlock.manifests.determine_jobs_to_queue import determine_jobs_to_queue
from interlock.model.due import Blocked, DueManifest, LaidDown, PlannedFire, Refused, Replanned
from interlock.model.plan import Misfire, Plan

NOW = datetime(2030, 5, 6, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOURLY = '{"kind": "every", "interval_us": 3600000000}'

DUE = DueManifest(
    id=1,
    version="1",
    external_id="m",
    enabled=True,
    train="t",
    group_id=1,
    group_priority=0,
    group_last_queued_at=None,
    schedule_kind="every",
    schedule=HOURLY,
    time_zone="UTC",
    exclusions="[]",
    variance=timedelta(0),
    misfire=Misfire.FIRE_ONCE,
    misfire_threshold=timedelta(seconds=60),
    priority=None,
    max_attempts=None,
    retry_delay=None,
    max_retry_delay=None,
    retry_backoff=None,
    timeout=None,
    planned_at=NOW,
    planned_offset=timedelta(0),
    next_run_at=NOW,
    consumed_execution_id=None,
    write_failures=0,
    parent_success_id=None,
    failed_count=0,
    has_awaiting_dead_letter=False,
    has_queued_work=False,
    has_active_execution=False,
    has_successful_execution=False,
    now=NOW,
)
DEPENDENT = replace(DUE, schedule_kind="dependent", schedule="{}", parent_success_id=7, has_successful_execution=True)


def determine(due, *, dead_lettered: frozenset[int] = frozenset(), longest_pass: timedelta = HOUR):
    return determine_jobs_to_queue(due, dead_lettered=dead_lettered, random=lambda: 0.5, longest_pass=longest_pass)


def verdict_on(manifest: DueManifest, dead_lettered: frozenset[int] = frozenset()):
    [verdict] = determine([manifest], dead_lettered=dead_lettered)
    assert verdict.manifest is manifest
    return verdict


def test_a_pass_that_takes_too_long_leaves_the_rest_to_the_next_cycle():
    due = [replace(kind, id=number) for number, kind in enumerate([DUE, DUE, DEPENDENT, DEPENDENT])]
    verdicts = determine(due, longest_pass=timedelta(0))
    assert [verdict.manifest.id for verdict in verdicts] == [0, 2]


@pytest.mark.parametrize("due", [DUE, DEPENDENT])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"enabled": False}, "manifest_disabled"),
        ({"has_awaiting_dead_letter": True}, "dead_letter_open"),
        ({"has_queued_work": True}, "already_queued"),
        ({"has_active_execution": True}, "already_active"),
    ],
)
def test_both_passes_have_the_same_guards(due, change, reason):
    assert verdict_on(replace(due, **change)).reason == reason
    assert isinstance(verdict_on(replace(due, **change)), Blocked)
    assert isinstance(verdict_on(due), PlannedFire)


@pytest.mark.parametrize("due", [DUE, DEPENDENT])
def test_what_was_dead_lettered_in_this_cycle_is_blocked_though_it_was_loaded_before(due):
    assert verdict_on(due, frozenset({due.id})).reason == "just_dead_lettered"


def test_time_based_manifests_come_before_dependents():
    verdicts = determine([DEPENDENT, DUE])
    assert [verdict.manifest for verdict in verdicts] == [DUE, DEPENDENT]


def test_a_fire_is_named_by_its_nominal_time_without_the_drawn_delay():
    late = replace(DUE, planned_at=NOW, planned_offset=timedelta(minutes=3))
    verdict = verdict_on(late)
    assert verdict.fire_key == "2030-05-06T11:57:00.000000+00:00"
    assert verdict.next == Plan(NOW + timedelta(minutes=57))


def test_what_is_stored_wrongly_is_refused_and_nothing_else():
    broken = replace(DUE, schedule='{"kind": "every", "interval_us": 0}')
    verdicts = determine([broken, DUE])
    assert [type(verdict) for verdict in verdicts] == [Refused, PlannedFire]


@pytest.mark.parametrize(
    ("change", "expected", "reason"),
    [
        ({"planned_at": None}, LaidDown, "nothing_planned"),
        ({"planned_at": NOW + HOUR}, Replanned, "not_yet"),
        ({"planned_at": NOW - HOUR / 2, "misfire": Misfire.SKIP}, Replanned, "misfire"),
        ({"exclusions": '[{"kind": "weekdays", "names": ["mon"]}]'}, Replanned, "excluded"),
        ({"exclusions": '[{"kind": "window", "start": "11:00:00", "end": "13:00:00"}]'}, Replanned, "excluded"),
        ({"schedule_kind": "manual"}, LaidDown, "manual"),
        ({"schedule_kind": "dormant"}, LaidDown, "dormant"),
    ],
)
def test_why_a_schedule_does_not_fire(change, expected, reason):
    verdict = verdict_on(replace(DUE, **change))
    assert (type(verdict), verdict.reason) == (expected, reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"parent_success_id": None}, "parent_not_succeeded"),
        ({"consumed_execution_id": 7}, "parent_success_consumed"),
        ({"has_successful_execution": False}, "parent_success_stale"),
    ],
)
def test_why_a_dependent_does_not_fire(change, reason):
    verdict = verdict_on(replace(DEPENDENT, **change))
    assert (type(verdict), verdict.reason) == (LaidDown, reason)


def test_a_dependent_stands_for_the_success_by_its_number_also_when_that_is_smaller():
    verdict = verdict_on(replace(DEPENDENT, consumed_execution_id=8))
    assert (verdict.fire_key, verdict.consumed, verdict.next) == ("7", 7, None)
