"""Blockers of the fleet: nobody is there to do it, or who has it does not get on with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.operate.blockers.blocker import Blocker, Code, command
from interlock.operate.blockers.timers import is_forgotten
from interlock.operate.blockers.words import at, span

if TYPE_CHECKING:
    from interlock.operate.blockers.facts import Facts
    from interlock.store.explaining import ExecutionFacts, ManifestFacts

_BY_THE_MANAGER = frozenset({"every", "cron", "once", "dependent"})


def no_worker_for_train(facts: Facts) -> Blocker | None:
    waits = facts.queued is not None or (facts.dispatched is not None and facts.dispatched.offered)
    if not waits or facts.around.workers or not facts.around.dispatchers:
        return None
    if facts.around.routed:
        return _no_runner_for_train(facts) if facts.around.runners else None
    others = facts.around.dispatchers
    return Blocker(
        code=Code.NO_WORKER_FOR_TRAIN,
        evidence=f"none of the {others} live servers that dispatch runs the train {facts.train}",
        advice="start a worker whose code declares the train and whose tags cover it; a renamed train needs aliases=",
        command=command("run", "--roles", "worker"),
        details={"train": facts.train},
    )


def _no_runner_for_train(facts: Facts) -> Blocker:
    """Without any runner it may be somebody else who takes what is submitted."""
    return Blocker(
        code=Code.NO_WORKER_FOR_TRAIN,
        evidence=f"the train {facts.train} is submitted elsewhere, and none of the {facts.around.runners} live runners"
        " knows it or has its tags",
        advice="deploy its code to the runner, or start one whose tags cover it",
        command=command("servers", "list"),
        details={"train": facts.train},
    )


def no_dispatcher(facts: Facts) -> Blocker | None:
    waits = facts.queued is not None or (facts.dispatched is not None and facts.dispatched.offered)
    if not waits or facts.around.dispatchers:
        return None
    return Blocker(
        code=Code.NO_DISPATCHER,
        evidence=f"of {facts.around.servers} live servers none has the role worker or dispatch",
        advice=f"start a server of the app that declares {facts.train}",
        command=command("run"),
        details={"servers": facts.around.servers},
    )


def scheduler_stalled(facts: Facts) -> Blocker | None:
    evidence = _no_timer_server(facts) or _nobody_fires(facts) or _no_manager(facts) or _overdue(facts)
    if evidence is None:
        return None
    return Blocker(
        code=Code.SCHEDULER_STALLED,
        evidence=evidence,
        advice="start a server with the role whose code declares it, or see in the logs of those that run what goes on",
        command=command("servers", "list"),
        details={"managers": facts.around.managers, "timer_servers": facts.around.timer_servers},
    )


def claimed_not_started(facts: Facts) -> Blocker | None:
    execution = facts.dispatched
    found = None if execution is None else _why_not_started(facts, execution)
    if execution is None or found is None:
        return None
    evidence, advice, line = found
    return Blocker(
        code=Code.CLAIMED_NOT_STARTED,
        evidence=evidence,
        advice=advice,
        command=line,
        details={"execution": str(execution.id), "server": execution.server, "submitter": execution.submitter},
    )


def _no_timer_server(facts: Facts) -> str | None:
    return "no live server has the role timers" if facts.timer is not None and not facts.around.timer_servers else None


def _nobody_fires(facts: Facts) -> str | None:
    if facts.timer is None or not is_forgotten(facts.timer, facts.now):
        return None
    return (
        f"none of the {facts.around.timer_servers} live servers that fire timers has run or skipped it for"
        f" {span(facts.timer.row.unseen_for)}: their code may not declare it any more"
    )


def _no_manager(facts: Facts) -> str | None:
    manifest = facts.planned
    if manifest is None or manifest.schedule_kind not in _BY_THE_MANAGER or facts.around.managers:
        return None
    return "no live server has the role manifests: nothing is queued by its schedule"


def _overdue(facts: Facts) -> str | None:
    manifest = facts.planned
    if manifest is None or manifest.planned_at is None or _is_held_back(facts, manifest):
        return None
    late = facts.now - manifest.planned_at
    if late <= facts.stall_after:
        return None
    marker = (
        "" if manifest.next_run_at is not None else " and its marker is missing, which the sweep repairs in a minute"
    )
    return f"it was due {span(late)} ago, at {at(manifest.planned_at)}, nothing else blocks it{marker}"


def _is_held_back(facts: Facts, manifest: ManifestFacts) -> bool:
    off = not manifest.enabled or not facts.around.group_enabled or bool(facts.around.pauses)
    set_aside = manifest.write_retry_at is not None and manifest.write_retry_at > facts.now
    return off or set_aside or manifest.dead_letter_id is not None


def _why_not_started(facts: Facts, execution: ExecutionFacts) -> tuple[str, str, str] | None:
    """Evidence, advice and command."""
    age = span(facts.now - execution.created_at)
    if execution.state == "in_progress":
        return None if execution.held else _holder_is_gone(execution, facts.around.servers)
    if execution.offered:
        slots = f"{len(facts.around.workers)} workers with {facts.around.slots} slots could"
        evidence = f"dispatched {age} ago and not yet claimed; {slots}"
        return evidence, "wait for a free slot, or start another worker", command("run", "--roles", "worker")
    if execution.submitter is not None:
        return _submitted(execution, age)
    evidence = f"dispatched {age} ago, and no worker can claim it any more: its job is gone"
    return evidence, "cancel it and enqueue it again", command("executions", "cancel", execution.id)


def _holder_is_gone(execution: ExecutionFacts, servers: int) -> tuple[str, str, str]:
    name = execution.server or execution.host or "a server that is not registered"
    over = f" {span(execution.lease_over)} ago" if execution.lease_over is not None else ""
    state = f"is {execution.server_state}" if execution.server_state in ("lost", "gone") else f"lost its lease{over}"
    evidence = f"it was claimed by {name}, which {state}; recovery queues it again in its place"
    if not servers:
        return f"{evidence}, but no server lives", "start a server: recovery runs on every one", command("run")
    return evidence, "wait a few seconds; recovery runs on every live server", command("servers", "list", "--all")


def _submitted(execution: ExecutionFacts, age: str) -> tuple[str, str, str]:
    if execution.server is not None and execution.held:
        evidence = f"{execution.server} has been submitting it to {execution.submitter} for {age}"
    else:
        evidence = f"it was submitted to {execution.submitter} {age} ago, which has not started it"
    advice = "look there; it is queued again after stale_pending_timeout"
    return evidence, advice, command("executions", "show", execution.id)
