"""Blockers of capacity: a cap is used up, or others come first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.operate.blockers.blocker import Blocker, Code, command
from interlock.operate.blockers.words import counted, span
from interlock.store.explaining import MOST

if TYPE_CHECKING:
    from interlock.operate.blockers.facts import Facts
    from interlock.store.explaining import CapHolder


def group_at_cap(facts: Facts) -> Blocker | None:
    around = facts.around
    if facts.queued is None or around.group_cap is None or around.group_active < around.group_cap:
        return None
    held = "; ".join(_holder(holder, facts) for holder in facts.holders)
    name = around.group_name or ""
    return Blocker(
        code=Code.GROUP_AT_CAP,
        evidence=f"the manifest group {name} has {counted(around.group_active, MOST)} active of at most"
        f" {around.group_cap}; it is held by {held}",
        advice="wait for one of them, cancel one, or raise the cap",
        command=command("groups", "set", name, "--cap", around.group_cap + 1),
        details={"group": name, "cap": around.group_cap, "active": around.group_active, "holders": _ids(facts)},
    )


def global_at_cap(facts: Facts) -> Blocker | None:
    cap = facts.max_active_jobs
    if facts.queued is None or cap is None or facts.train in facts.uncounted_trains or facts.around.active < cap:
        return None
    return Blocker(
        code=Code.GLOBAL_AT_CAP,
        evidence=f"{counted(facts.around.active, MOST)} executions are active of at most {cap} in all"
        " (max_active_jobs)",
        advice="wait, or raise the setting max_active_jobs and restart the servers",
        command=command("config", "--show-origin"),
        details={"cap": cap, "active": facts.around.active},
    )


def behind(facts: Facts) -> Blocker | None:
    ready = facts.queued is not None and facts.queued.ready
    offered = facts.dispatched is not None and facts.dispatched.offered
    if not facts.ahead or not (ready or offered):
        return None
    around = facts.around
    return Blocker(
        code=Code.BEHIND,
        evidence=f"{counted(facts.ahead, MOST)} others that the same {len(around.workers)} workers"
        f" ({around.slots} slots) can run come first",
        advice="wait, start another worker, or give it a higher priority when it is enqueued",
        command=command("run", "--roles", "worker"),
        details={"count": facts.ahead, "capped": facts.ahead >= MOST, "slots": around.slots},
    )


def no_free_slot(facts: Facts) -> Blocker | None:
    """A worker may have room and not see it yet; where none has, it waits for the end of what runs."""
    ready = facts.queued is not None and facts.queued.ready
    offered = facts.dispatched is not None and facts.dispatched.offered
    around = facts.around
    if not (ready or offered) or not around.workers or around.with_room:
        return None
    return Blocker(
        code=Code.NO_FREE_SLOT,
        evidence=_what_is_taken(facts),
        advice="wait for the end of one, cancel one, start another worker, or raise "
        + ("worker_slots" if around.full else "the train's concurrency="),
        command=command("executions", "list", "--active"),
        details={
            "workers": len(around.workers),
            "slots": around.slots,
            "full": around.full,
            "limited": around.at_limit,
        },
    )


def _what_is_taken(facts: Facts) -> str:
    around, train = facts.around, facts.train
    full = f"{around.full} have no free slot" if around.full else ""
    limited = f"{around.at_limit} have as many of it in hand as its concurrency= allows" if around.at_limit else ""
    found = " and ".join(filter(None, (full, limited)))
    return f"of the {len(around.workers)} workers ({around.slots} slots) that run the train {train}, {found}"


def _holder(holder: CapHolder, facts: Facts) -> str:
    what = holder.external_id or holder.train
    since = f" for {span(facts.now - holder.started_at)}" if holder.started_at is not None else ", not started"
    return f"execution {holder.id} ({what} on {holder.server or 'no server yet'}{since})"


def _ids(facts: Facts) -> list[str]:
    return [str(holder.id) for holder in facts.holders]
