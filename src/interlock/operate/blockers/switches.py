"""Blockers that a person set: switched off, paused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.model.work import ALL_TRAINS
from interlock.operate.blockers.blocker import Blocker, Code, command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.operate.blockers.facts import Facts


def manifest_disabled(facts: Facts) -> Blocker | None:
    manifest = facts.planned
    if manifest is None or manifest.enabled:
        return None
    return Blocker(
        code=Code.MANIFEST_DISABLED,
        evidence=f"the manifest {manifest.external_id} is switched off",
        advice="switch it on",
        command=command("manifests", "enable", manifest.external_id),
    )


def group_disabled(facts: Facts) -> Blocker | None:
    if facts.around.group_enabled or not _waits(facts):
        return None
    name = facts.around.group_name or ""
    return Blocker(
        code=Code.GROUP_DISABLED,
        evidence=f"the manifest group {name} is switched off: nothing of it is queued or dispatched",
        advice="switch it on",
        command=command("groups", "set", name, "--enable"),
        details={"group": name},
    )


def paused(facts: Facts) -> Blocker | None:
    pauses = facts.around.pauses
    if not pauses or not _waits(facts):
        return None
    everything = ALL_TRAINS in pauses
    halted = "it is not dispatched" if facts.planned is None else "no manifest of it is queued"
    return Blocker(
        code=Code.PAUSED,
        evidence=f"{what_is_paused(pauses)}: {'nothing of them is queued or dispatched' if everything else halted}",
        advice="take the pause back",
        command=command("resume") if everything else command("resume", pauses[0]),
        details={"trains": list(pauses)},
    )


def what_is_paused(pauses: Sequence[str]) -> str:
    return "all trains are paused" if ALL_TRAINS in pauses else f"the train {pauses[0]} is paused"


def _waits(facts: Facts) -> bool:
    return facts.planned is not None or facts.queued is not None
