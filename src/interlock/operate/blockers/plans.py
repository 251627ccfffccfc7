"""Blockers of time: not yet, not now, no more."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.errors import InterlockError
from interlock.model.exclusion import is_excluded, next_allowed
from interlock.model.outcome import SUBMIT_FAILED
from interlock.model.schedule import Cron, Every, fire_key, next_occurrence
from interlock.model.schedule_json import decode_exclusions, decode_schedule
from interlock.model.schedule_text import describe
from interlock.operate.blockers.blocker import Blocker, Code, command
from interlock.operate.blockers.messages import message_later
from interlock.operate.blockers.words import ahead, at, span

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from interlock.model.exclusion import Exclusion
    from interlock.model.schedule import Schedule
    from interlock.operate.blockers.facts import Facts
    from interlock.store.explaining import EntryFacts, ManifestFacts

_LONGEST_LOOK_BACK = timedelta(days=5 * 366)


def scheduled_later(facts: Facts) -> Blocker | None:
    if facts.message is not None:
        return message_later(facts)
    entry, manifest = facts.queued, facts.planned
    if entry is not None and not entry.ready and entry.scheduled_at > facts.now and not _is_retry(facts):
        why = "its run asked to be called again later" if entry.previous_state == "snoozed" else "it was delayed"
        return Blocker(
            code=Code.SCHEDULED_LATER,
            evidence=f"entry {entry.id} is not to run before {ahead(entry.scheduled_at, facts.now)}: {why}",
            advice="wait, or cancel it and enqueue it without a delay",
            command=command("queue", "cancel", entry.id),
            details={"entry": str(entry.id), "at": entry.scheduled_at},
        )
    if manifest is None or manifest.planned_at is None or manifest.planned_at <= facts.now:
        return None
    return Blocker(
        code=Code.SCHEDULED_LATER,
        evidence=f"it is not due before {ahead(manifest.planned_at, facts.now)}, {schedule_words(manifest)}",
        advice="wait, or run it out of turn",
        command=command("manifests", "trigger", manifest.external_id),
        details={"at": manifest.planned_at},
    )


def retry_backoff(facts: Facts) -> Blocker | None:
    entry = facts.queued
    if entry is None or entry.ready or entry.scheduled_at <= facts.now or not _is_retry(facts):
        return None
    return Blocker(
        code=Code.RETRY_BACKOFF,
        evidence=f"{_before(entry)} is not to run before {ahead(entry.scheduled_at, facts.now)}",
        advice="wait, or see what failed; a run out of turn does not wait for it",
        command=command("executions", "show", entry.previous_execution_id),
        details={"entry": str(entry.id), "at": entry.scheduled_at, "attempt": entry.attempt},
    )


def _before(entry: EntryFacts) -> str:
    failed = f"execution {entry.previous_execution_id} failed ({entry.previous_failure or 'its record is gone'})"
    attempt = f"attempt {entry.attempt} of {entry.max_attempts}"
    if entry.previous_failure == SUBMIT_FAILED:
        said = " ".join((entry.previous_error or "").split())
        return f"{failed}: {said}; that was failed submit {entry.submits}, and {attempt}"
    return f"{failed}; {attempt}"


def excluded_window(facts: Facts) -> Blocker | None:
    manifest = facts.planned
    if manifest is not None:
        exclusions, zone = exclusions_of(manifest), manifest.time_zone
    elif facts.timer is not None:
        exclusions, zone = facts.timer.exclusions, facts.timer.time_zone
    else:
        return None
    found = is_excluded(exclusions, zone, facts.now) if exclusions else None
    if found is None:
        return None
    until = next_allowed(exclusions, zone, facts.now)
    end = "five years hold no time that is allowed" if until is None else f"allowed again {ahead(until, facts.now)}"
    return Blocker(
        code=Code.EXCLUDED_WINDOW,
        evidence=f"now lies in an excluded time ({found}, read in {zone}); {end}",
        advice="wait, or change exclude= in the declaration; a run out of turn ignores it",
        command=_out_of_turn(manifest),
        details={"until": until},
    )


def misfire_skipped(facts: Facts) -> Blocker | None:
    manifest = facts.planned
    if manifest is None or manifest.misfire != "skip" or manifest.planned_at is None or not manifest.enabled:
        return None
    late = facts.now - manifest.planned_at
    missed = manifest.planned_at if late > manifest.misfire_threshold else _left_out(facts, manifest)
    if missed is None:
        return None
    will = "will be left out" if missed == manifest.planned_at else "was left out"
    return Blocker(
        code=Code.MISFIRE_SKIPPED,
        evidence=f"the fire of {at(missed)} {will}: its turn came more than {span(manifest.misfire_threshold)} late,"
        " and misfire is 'skip'",
        advice="run it out of turn to make up for it; declare misfire='fire_once' or a longer misfire_threshold",
        command=command("manifests", "trigger", manifest.external_id),
        details={"missed": missed},
    )


def write_error(facts: Facts) -> Blocker | None:
    manifest = facts.planned
    if manifest is None or manifest.write_error is None or manifest.write_retry_at is None:
        return None
    return Blocker(
        code=Code.WRITE_ERROR,
        evidence=f"its entry could not be written, {manifest.write_failures} times in a row:"
        f" {manifest.write_error}; tried again at {ahead(manifest.write_retry_at, facts.now)}",
        advice="correct its declaration; it is tried again by itself",
        command=command("manifests", "show", manifest.external_id),
        details={"error": manifest.write_error, "at": manifest.write_retry_at},
    )


def schedule_words(manifest: ManifestFacts) -> str:
    schedule = schedule_of(manifest)
    return "by a schedule that cannot be read" if schedule is None else describe(schedule)


def schedule_of(manifest: ManifestFacts) -> Schedule | None:
    """None for one that cannot be read: the manager says so in `write_error`."""
    try:
        return decode_schedule(json.loads(manifest.schedule))
    except (InterlockError, ValueError):
        return None


def exclusions_of(manifest: ManifestFacts) -> Sequence[Exclusion]:
    try:
        return tuple(decode_exclusions(json.loads(manifest.exclusions)))
    except (InterlockError, ValueError):
        return ()


def previous_fire(schedule: Schedule | None, before: datetime) -> datetime | None:
    """The last planned time before another one of the same schedule."""
    match schedule:
        case Every(interval):
            return before - interval
        case Cron():
            return _previous_cron(schedule, before)
        case _:
            return None


def _previous_cron(schedule: Cron, before: datetime) -> datetime | None:
    """Look back in growing steps until one is found, then go forward to the last."""
    step = timedelta(minutes=1)
    while step < _LONGEST_LOOK_BACK:
        found = next_occurrence(schedule, before - step, before)
        if found is not None and found < before:
            while (later := next_occurrence(schedule, found, before)) is not None and later < before:
                found = later
            return found
        step *= 2
    return None


def _left_out(facts: Facts, manifest: ManifestFacts) -> datetime | None:
    """The last fire before the planned one, if its time has passed and it did not run for being late."""
    if manifest.planned_at is None:
        return None
    missed = previous_fire(schedule_of(manifest), manifest.planned_at - manifest.planned_offset)
    if missed is None or not manifest.created_at < missed < facts.now:
        return None
    ran = manifest.last_fire_key is not None and manifest.last_fire_key >= fire_key(missed)
    return None if ran or is_excluded(exclusions_of(manifest), manifest.time_zone, missed) else missed


def _is_retry(facts: Facts) -> bool:
    entry = facts.queued
    return entry is not None and entry.previous_execution_id is not None and entry.previous_state != "snoozed"


def _out_of_turn(manifest: ManifestFacts | None) -> str:
    if manifest is None:
        return command("timers", "list")
    return command("manifests", "trigger", manifest.external_id)
