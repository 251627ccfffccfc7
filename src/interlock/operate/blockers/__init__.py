"""Every reason why something does not run: one small function each over facts that were loaded once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.operate.blockers.blocker import Blocker, Code
from interlock.operate.blockers.capacity import behind, global_at_cap, group_at_cap, no_free_slot
from interlock.operate.blockers.fleet import claimed_not_started, no_dispatcher, no_worker_for_train, scheduler_stalled
from interlock.operate.blockers.messages import behind_its_key, breaker_open, message_gave_up, no_drain, topic_parked
from interlock.operate.blockers.parents import dormant, parent_disabled, parent_not_succeeded
from interlock.operate.blockers.plans import (
    excluded_window,
    misfire_skipped,
    retry_backoff,
    scheduled_later,
    write_error,
)
from interlock.operate.blockers.storage import long_transaction, schema_skew
from interlock.operate.blockers.switches import group_disabled, manifest_disabled, paused
from interlock.operate.blockers.timers import local_cap, lock_service_down, slots_held, tick_taken
from interlock.operate.blockers.work import already_active, already_queued, dead_letter_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.operate.blockers.facts import Facts

__all__ = ["BLOCKERS", "Blocker", "Code", "blockers_of"]

BLOCKERS: dict[Code, Callable[[Facts], Blocker | None]] = {
    Code.SCHEDULED_LATER: scheduled_later,
    Code.RETRY_BACKOFF: retry_backoff,
    Code.MANIFEST_DISABLED: manifest_disabled,
    Code.GROUP_DISABLED: group_disabled,
    Code.EXCLUDED_WINDOW: excluded_window,
    Code.PARENT_NOT_SUCCEEDED: parent_not_succeeded,
    Code.PARENT_DISABLED: parent_disabled,
    Code.DEAD_LETTER_BLOCKS: dead_letter_blocks,
    Code.ALREADY_QUEUED: already_queued,
    Code.ALREADY_ACTIVE: already_active,
    Code.PAUSED: paused,
    Code.DORMANT: dormant,
    Code.MISFIRE_SKIPPED: misfire_skipped,
    Code.WRITE_ERROR: write_error,
    Code.GROUP_AT_CAP: group_at_cap,
    Code.GLOBAL_AT_CAP: global_at_cap,
    Code.BEHIND: behind,
    Code.NO_FREE_SLOT: no_free_slot,
    Code.NO_WORKER_FOR_TRAIN: no_worker_for_train,
    Code.NO_DISPATCHER: no_dispatcher,
    Code.SCHEDULER_STALLED: scheduler_stalled,
    Code.CLAIMED_NOT_STARTED: claimed_not_started,
    Code.SLOTS_HELD: slots_held,
    Code.TICK_TAKEN: tick_taken,
    Code.LOCAL_CAP: local_cap,
    Code.LOCK_SERVICE_DOWN: lock_service_down,
    Code.MESSAGE_GAVE_UP: message_gave_up,
    Code.TOPIC_PARKED: topic_parked,
    Code.BREAKER_OPEN: breaker_open,
    Code.BEHIND_ITS_KEY: behind_its_key,
    Code.NO_DRAIN: no_drain,
    Code.SCHEMA_SKEW: schema_skew,
    Code.LONG_TRANSACTION: long_transaction,
}


def blockers_of(facts: Facts) -> list[Blocker]:
    """All that hold, in the order in which they are told."""
    return [found for look in BLOCKERS.values() if (found := look(facts)) is not None]
