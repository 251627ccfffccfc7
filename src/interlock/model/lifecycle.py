"""Every state machine of Interlock, as data: the SQL guards, the tables' CHECKs and the docs are held against it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping


class WorkState(StrEnum):
    QUEUED = "queued"
    DISPATCHED = "dispatched"
    CANCELLED = "cancelled"
    FAILED = "failed"


class ExecutionState(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SNOOZED = "snoozed"


class DeadLetterState(StrEnum):
    AWAITING_INTERVENTION = "awaiting_intervention"
    RETRIED = "retried"
    ACKNOWLEDGED = "acknowledged"


class ServerState(StrEnum):
    ALIVE = "alive"
    DRAINING = "draining"
    GONE = "gone"
    LOST = "lost"


class OutboxState(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"
    NEEDS_REVIEW = "needs_review"
    EXPIRED = "expired"


S = TypeVar("S", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Machine(Generic[S]):
    """The states that rows of a table can be in, and the only moves between them."""

    table: str
    states: type[S]
    moves: Mapping[S, frozenset[S]]

    def allows(self, before: S, after: S) -> bool:
        return after in self.moves.get(before, frozenset())

    def ended(self) -> frozenset[S]:
        """The states that no row leaves."""
        return frozenset(state for state in self.states if not self.moves.get(state))


WORK_QUEUE = Machine(
    "work_queue",
    WorkState,
    {
        WorkState.QUEUED: frozenset({WorkState.DISPATCHED, WorkState.CANCELLED, WorkState.FAILED}),
        WorkState.DISPATCHED: frozenset({WorkState.QUEUED}),  # the submitter refused it
    },
)
EXECUTION = Machine(
    "execution",
    ExecutionState,
    {
        ExecutionState.PENDING: frozenset(
            {ExecutionState.IN_PROGRESS, ExecutionState.FAILED, ExecutionState.CANCELLED}
        ),
        ExecutionState.IN_PROGRESS: frozenset(
            {
                ExecutionState.COMPLETED,
                ExecutionState.FAILED,
                ExecutionState.CANCELLED,
                ExecutionState.SNOOZED,
                ExecutionState.PENDING,  # released at shutdown
            }
        ),
    },
)
DEAD_LETTER = Machine(
    "dead_letter",
    DeadLetterState,
    {
        DeadLetterState.AWAITING_INTERVENTION: frozenset({DeadLetterState.RETRIED, DeadLetterState.ACKNOWLEDGED}),
    },
)
SERVER = Machine(
    "server",
    ServerState,
    {
        ServerState.ALIVE: frozenset({ServerState.DRAINING, ServerState.LOST}),
        ServerState.DRAINING: frozenset({ServerState.GONE, ServerState.LOST}),
    },
)
OUTBOX = Machine(
    "outbox",
    OutboxState,
    {
        OutboxState.PENDING: frozenset(
            {OutboxState.DELIVERED, OutboxState.DEAD, OutboxState.NEEDS_REVIEW, OutboxState.EXPIRED}
        ),
        OutboxState.DEAD: frozenset({OutboxState.PENDING}),  # redrive
        OutboxState.NEEDS_REVIEW: frozenset({OutboxState.PENDING}),  # redrive
    },
)

MACHINES = {machine.table: machine for machine in (WORK_QUEUE, EXECUTION, DEAD_LETTER, SERVER, OUTBOX)}
