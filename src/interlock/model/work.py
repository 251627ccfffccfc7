"""Records of the work queue: what is written to it, what the dispatcher reads from it, and how work is doing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from interlock.model.lifecycle import ExecutionState, WorkState

if TYPE_CHECKING:
    from datetime import timedelta

    from interlock.model.execution import Policy

DEFAULT_GROUP = "default"
ALL_TRAINS = "*"
"""Not the name of a train: a pause of it pauses them all."""


class WorkKind(StrEnum):
    """Why an entry was written; a retry keeps the kind of what it repeats."""

    SCHEDULED = "scheduled"
    MANUAL = "manual"
    REQUEUE = "requeue"
    DORMANT = "dormant"
    ADHOC = "adhoc"


class Terms(NamedTuple):
    """What the entries of one train in one group have in common."""

    train: str
    aliases: tuple[str, ...]
    group: str
    priority: int | None
    policy: Policy


class NewEntry(Struct, frozen=True, gc=False):
    """One ad-hoc run to be queued; the input is JSON. A struct, because thousands are made at a time."""

    terms: Terms
    input: str
    priority: int | None = None
    delay: timedelta | None = None
    key: str | None = None


class Lane(NamedTuple):
    """A group and a train that have ready entries, and may be dispatched as far as their switches go."""

    group_id: int
    train: str
    group_priority: int
    cap: int | None


class Candidate(NamedTuple):
    """A locked entry, in the order of dispatch."""

    id: int
    group_id: int
    train: str
    group_priority: int


class Dispatched(NamedTuple):
    """An entry that became an execution."""

    entry_id: int
    execution_id: int
    train: str
    attempt: int
    manifest: str | None


class WorkStatus(StrEnum):
    """How work is doing, seen over all its attempts."""

    QUEUED = "queued"
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    DEAD_LETTERED = "dead_lettered"
    CANCELLED = "cancelled"


ENDED = frozenset({WorkStatus.COMPLETED, WorkStatus.FAILED, WorkStatus.DEAD_LETTERED, WorkStatus.CANCELLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """The latest entry and the latest execution of one piece of work, and its open dead letter."""

    entry_state: WorkState | None
    entry_failure: str | None
    execution_state: ExecutionState | None
    output: str | None
    failure: str | None
    junction: str | None
    error_type: str | None
    error_message: str | None
    traceback: str | None
    dead_letter_id: int | None
    dead_letter_reason: str | None

    @property
    def status(self) -> WorkStatus:
        """An entry that waits, was cancelled or could not be dispatched says it; else the latest execution does."""
        match self.entry_state:
            case WorkState.QUEUED:
                return WorkStatus.QUEUED
            case WorkState.CANCELLED:
                return WorkStatus.CANCELLED
            case WorkState.FAILED:
                return WorkStatus.FAILED
            case _:
                return self._status_of_execution()

    def _status_of_execution(self) -> WorkStatus:
        match self.execution_state:
            case None | ExecutionState.SNOOZED:  # the entry that follows a snooze is written with it
                return WorkStatus.QUEUED
            case ExecutionState.FAILED if self.dead_letter_id is not None:
                return WorkStatus.DEAD_LETTERED
            case state:
                return WorkStatus(state.value)
