"""Blockers that are work of the same manifest: waiting, running, or given up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.operate.blockers.blocker import Blocker, Code, command

if TYPE_CHECKING:
    from interlock.operate.blockers.facts import Facts


def dead_letter_blocks(facts: Facts) -> Blocker | None:
    letter = facts.manifest.dead_letter_id if facts.manifest is not None and facts.asked_for_manifest else None
    if letter is None and facts.execution is not None and facts.queued is None:
        letter = facts.execution.dead_letter_id
    if letter is None:
        return None
    what = "the manifest is not queued" if facts.asked_for_manifest else "the work is not tried again"
    return Blocker(
        code=Code.DEAD_LETTER_BLOCKS,
        evidence=f"dead letter {letter} waits for a person; until then {what}",
        advice="queue it again once the cause is gone, or close it: interlock dead-letters acknowledge",
        command=command("dead-letters", "requeue", letter),
        details={"dead_letter": str(letter)},
    )


def already_queued(facts: Facts) -> Blocker | None:
    manifest = facts.manifest
    if not facts.asked_for_manifest or manifest is None or manifest.entry_id is None:
        return None
    return Blocker(
        code=Code.ALREADY_QUEUED,
        evidence=f"entry {manifest.entry_id} of it is queued; the next fire is queued when that is over",
        advice="see what the entry waits for (below), or cancel it",
        command=command("queue", "cancel", manifest.entry_id),
        details={"entry": str(manifest.entry_id)},
    )


def already_active(facts: Facts) -> Blocker | None:
    manifest = facts.manifest
    if not facts.asked_for_manifest or manifest is None or manifest.execution_id is None:
        return None
    return Blocker(
        code=Code.ALREADY_ACTIVE,
        evidence=f"execution {manifest.execution_id} of it is active; the next fire is queued when that is over",
        advice="wait for it, or cancel it",
        command=command("executions", "cancel", manifest.execution_id),
        details={"execution": str(manifest.execution_id)},
    )
