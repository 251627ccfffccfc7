"""Blockers of manifests that wait for another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.operate.blockers.blocker import Blocker, Code, command
from interlock.operate.blockers.words import at

if TYPE_CHECKING:
    from interlock.operate.blockers.facts import Facts
    from interlock.store.explaining import ManifestFacts


def parent_not_succeeded(facts: Facts) -> Blocker | None:
    manifest = facts.planned
    if manifest is None or manifest.schedule_kind != "dependent" or _has_new_success(manifest):
        return None
    return Blocker(
        code=Code.PARENT_NOT_SUCCEEDED,
        evidence=_what_is_missing(manifest),
        advice="ask what keeps the parent from running, or run it out of turn",
        command=command("explain", manifest.parent or ""),
        details={"parent": manifest.parent, "last_success": _text(manifest.parent_success_id)},
    )


def parent_disabled(facts: Facts) -> Blocker | None:
    manifest = facts.planned
    if manifest is None or manifest.parent is None or manifest.parent_enabled or _has_new_success(manifest):
        return None
    return Blocker(
        code=Code.PARENT_DISABLED,
        evidence=f"its parent {manifest.parent} is switched off and will not succeed by itself",
        advice="switch the parent on, or run it out of turn",
        command=command("manifests", "enable", manifest.parent),
        details={"parent": manifest.parent},
    )


def dormant(facts: Facts) -> Blocker | None:
    manifest = facts.planned
    if manifest is None or manifest.schedule_kind != "dormant":
        return None
    return Blocker(
        code=Code.DORMANT,
        evidence=f"it runs only when a run of its parent {manifest.parent} activates it",
        advice="run it by hand, or let the parent call current_execution().aactivate(…)",
        command=command("manifests", "trigger", manifest.external_id),
        details={"parent": manifest.parent},
    )


def _has_new_success(manifest: ManifestFacts) -> bool:
    """The rule by which the manager decides: another success than the one consumed, with its run on record."""
    success = manifest.parent_success_id
    return success is not None and success != manifest.consumed_execution_id and manifest.parent_success_on_record


def _what_is_missing(manifest: ManifestFacts) -> str:
    if manifest.parent_success_id is None:
        return f"its parent {manifest.parent} has never succeeded"
    when = "" if manifest.parent_success_at is None else f" of {at(manifest.parent_success_at)}"
    if manifest.parent_success_id == manifest.consumed_execution_id:
        run = f"execution {manifest.parent_success_id}{when}"
        return f"it has run for the last success of its parent {manifest.parent} ({run}) and waits for the next"
    return f"the run behind the last success of its parent {manifest.parent}{when} is no longer on record"


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)
