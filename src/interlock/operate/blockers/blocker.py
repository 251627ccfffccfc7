"""A blocker: why something does not run, how one can tell, and what to do about it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class Code(StrEnum):
    """Every reason that there is, in the order in which they are told."""

    SCHEDULED_LATER = "SCHEDULED_LATER"
    RETRY_BACKOFF = "RETRY_BACKOFF"
    MANIFEST_DISABLED = "MANIFEST_DISABLED"
    GROUP_DISABLED = "GROUP_DISABLED"
    EXCLUDED_WINDOW = "EXCLUDED_WINDOW"
    PARENT_NOT_SUCCEEDED = "PARENT_NOT_SUCCEEDED"
    PARENT_DISABLED = "PARENT_DISABLED"
    DEAD_LETTER_BLOCKS = "DEAD_LETTER_BLOCKS"
    ALREADY_QUEUED = "ALREADY_QUEUED"
    ALREADY_ACTIVE = "ALREADY_ACTIVE"
    PAUSED = "PAUSED"
    DORMANT = "DORMANT"
    MISFIRE_SKIPPED = "MISFIRE_SKIPPED"
    WRITE_ERROR = "WRITE_ERROR"
    GROUP_AT_CAP = "GROUP_AT_CAP"
    GLOBAL_AT_CAP = "GLOBAL_AT_CAP"
    BEHIND = "BEHIND"
    NO_FREE_SLOT = "NO_FREE_SLOT"
    NO_WORKER_FOR_TRAIN = "NO_WORKER_FOR_TRAIN"
    NO_DISPATCHER = "NO_DISPATCHER"
    SCHEDULER_STALLED = "SCHEDULER_STALLED"
    CLAIMED_NOT_STARTED = "CLAIMED_NOT_STARTED"
    SLOTS_HELD = "SLOTS_HELD"
    TICK_TAKEN = "TICK_TAKEN"
    LOCAL_CAP = "LOCAL_CAP"
    LOCK_SERVICE_DOWN = "LOCK_SERVICE_DOWN"
    MESSAGE_GAVE_UP = "MESSAGE_GAVE_UP"
    TOPIC_PARKED = "TOPIC_PARKED"
    BREAKER_OPEN = "BREAKER_OPEN"
    BEHIND_ITS_KEY = "BEHIND_ITS_KEY"
    NO_DRAIN = "NO_DRAIN"
    SCHEMA_SKEW = "SCHEMA_SKEW"
    LONG_TRANSACTION = "LONG_TRANSACTION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    code: Code
    evidence: str
    """What was found, in words."""
    advice: str
    """What to do, in words."""
    command: str
    """What to type."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What was found, for programs; ids are strings."""


def command(*words: object) -> str:
    """A line for the shell, quoted where it must be."""
    return shlex.join(["interlock", *map(str, words)])
