"""How far something has come, in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.operate.blockers.facts import Phase
from interlock.operate.blockers.messages import message_standing
from interlock.operate.blockers.plans import schedule_words
from interlock.operate.blockers.switches import what_is_paused
from interlock.operate.blockers.words import ahead, at, span

if TYPE_CHECKING:
    from interlock.operate.blockers.facts import Facts, TimerFacts
    from interlock.store.explaining import EntryFacts, ExecutionFacts, ManifestFacts


def standing_of(facts: Facts) -> str:
    match facts:
        case _ if facts.timer is not None:
            return _timer(facts.timer)
        case _ if facts.message is not None:
            return message_standing(facts.message, facts)
        case _ if facts.queued is not None:
            return _queued(facts.queued, facts)
        case _ if facts.dispatched is not None:
            return _active(facts.dispatched, facts)
        case _ if facts.planned is not None:
            return _planned(facts.planned, facts)
        case _:
            return _over(facts)


def _timer(timer: TimerFacts) -> str:
    row = timer.row
    last = "never" if row.last_run_at is None else f"at {at(row.last_run_at)} on {row.last_host or 'an unknown server'}"
    return f"the timer {row.name} ran {row.runs} times, last {last}"


def _queued(entry: EntryFacts, facts: Facts) -> str:
    return (
        f"entry {entry.id} of train {entry.train} ({entry.kind}, attempt {entry.attempt} of {entry.max_attempts}) has"
        f" been queued for {span(facts.now - entry.created_at)}"
    )


def _active(execution: ExecutionFacts, facts: Facts) -> str:
    what = (
        f"execution {execution.id} of train {execution.train} (attempt {execution.attempt} of {execution.max_attempts})"
    )
    asked = "; it was asked to stop" if execution.cancel_requested_at is not None else ""
    if execution.started_at is None:
        return f"{what} was dispatched {span(facts.now - execution.created_at)} ago{asked}"
    where = execution.server or execution.host or "a server that is not registered"
    return f"{what} has been running on {where} for {span(facts.now - execution.started_at)}{asked}"


def _planned(manifest: ManifestFacts, facts: Facts) -> str:
    if manifest.planned_at is not None:
        plan, held = ahead(manifest.planned_at, facts.now), _held_back_by(manifest, facts)
        if held is not None:
            return f"the manifest {manifest.external_id} is held back: {held}; its plan is {plan}"
        return f"the manifest {manifest.external_id} is planned for {plan}"
    if manifest.schedule_kind == "once":
        return f"the manifest {manifest.external_id} was to run once, and that is over"
    return f"the manifest {manifest.external_id} has nothing planned: it runs {schedule_words(manifest)}"


def _held_back_by(manifest: ManifestFacts, facts: Facts) -> str | None:
    """What keeps it from being queued whatever its plan says, in the order of the blockers."""
    match facts.around:
        case _ if not manifest.enabled:
            return "it is switched off"
        case around if not around.group_enabled:
            return f"its group {around.group_name} is switched off"
        case _ if manifest.dead_letter_id is not None:
            return f"dead letter {manifest.dead_letter_id} waits for a person"
        case around if around.pauses:
            return what_is_paused(around.pauses)
        case _:
            return None


def _over(facts: Facts) -> str:
    execution, entry = facts.execution, facts.entry
    if execution is not None and facts.phase is Phase.OVER:
        how = f" ({execution.failure}{f', {execution.error_type}' if execution.error_type else ''})"
        when = "" if execution.ended_at is None else f" at {at(execution.ended_at)}"
        return f"execution {execution.id} {execution.state}{how if execution.failure else ''}{when}"
    if entry is not None:
        return f"entry {entry.id} is {entry.state}{f': {entry.failure}' if entry.failure else ''}"
    return "its record is gone"
