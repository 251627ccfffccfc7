"""Records of the outbox: what is published, what a worker holds, how a delivery ends, and what was written about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from interlock.model.outcome import Outcome, Retry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from interlock.model.lifecycle import OutboxState

BUCKETS = 1024
CRASH_LOOP = "crash_loop"
MAX_ATTEMPTS = "max_attempts"
LEAST_SHARE = 25  # of a batch, for each topic that has so many; what it has beyond its share is left to the next claim


@dataclass(eq=False)
class Delivered(Outcome):
    """The receiver has it; `record_id` is what it calls it."""

    record_id: str | None = None


@dataclass(eq=False)
class Dead(Outcome):
    """The receiver will never take it; `code` says why. A person may redrive it."""

    code: str = "rejected"
    reason: str = ""

    def __str__(self) -> str:
        return self.reason or self.code


class Throttled(Retry):
    """A retry that the receiver asked for because too much arrives."""


class NewMessage(NamedTuple):
    """One message to publish; payload and headers are JSON. Without an id it is given a random one."""

    topic: str
    payload: str
    headers: str = "{}"
    key: str | None = None
    partition: str | None = None
    message_id: str | None = None
    delay: timedelta | None = None
    expires: timedelta | None = None
    trace: str | None = None


class Published(NamedTuple):
    id: int
    message_id: str


class Road(NamedTuple):
    """The topics that a worker can deliver by one emitter, as the claim needs to know them."""

    pattern: str
    max_crashes: int
    idempotency_window: timedelta | None = None
    holds: bool = True
    has_room: bool = True


class ClaimRequest(NamedTuple):
    """Who asks for how much of which topics; `buckets` are those of held lanes, None in the mode `claim`.

    `depth` is how many messages of one bucket are looked at, `stretch` how many of one key are taken before others.
    """

    roads: Sequence[Road]
    limit: int
    lease: timedelta
    token: UUID
    server: UUID | None = None
    host: str | None = None
    topics: Sequence[str] | None = None
    partitions: Sequence[str] | None = None
    isolated: bool = False
    buckets: Sequence[int] | None = None
    blocked_keys: Sequence[str] = ()
    depth: int = 64
    stretch: int = 1


class Claimed(NamedTuple):
    """A message in the hands of one worker, or one that the claim itself ended (its state says so).

    After `good_for`, counted from the claim, it must not be emitted any more.
    """

    id: int
    message_id: str
    topic: str
    payload: str
    headers: str
    key: str | None
    partition: str | None
    state: OutboxState
    claims: int
    attempts: int
    crashes: int
    published_at: datetime
    expires_at: datetime | None
    trace: str | None
    out_of_order: bool
    failure: str | None
    probe: bool
    crashed: bool
    bucket: int | None
    good_for: timedelta | None = None


class Claims(NamedTuple):
    """What a claim took, and for how long the keys are blocked that it could not take."""

    messages: list[Claimed]
    blocked: Mapping[str, timedelta]


class Settling(StrEnum):
    """How a delivery ended, as it is written."""

    DELIVERED = "delivered"
    RETRY = "retry"
    SNOOZE = "snooze"
    DEAD = "dead"


class Settlement(NamedTuple):
    """The end of one delivery, as the holder of the claim wants to write it.

    By `claims` and `attempts`, which are those of the claim, a second try knows what a first one wrote whose answer
    was lost.
    """

    id: int
    token: UUID
    outcome: Settling
    record_id: str | None = None
    failure: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    delay: timedelta | None = None
    took: timedelta | None = None
    claims: int = 0
    attempts: int = 0


class Answer(StrEnum):
    """What became of a settlement: written (maybe by an earlier try), refused because the claim is another's by now,
    or too late altogether.
    """

    APPLIED = "applied"
    STALE = "stale"
    TERMINAL = "terminal"
    MISSING = "missing"


class MessageRow(NamedTuple):
    """A message as people see it in lists."""

    id: int
    message_id: str
    topic: str
    key: str | None
    partition: str | None
    state: OutboxState
    available_at: datetime
    expires_at: datetime | None
    claimed_by: UUID | None
    claimed_at: datetime | None
    claim_expires: datetime | None
    claims: int
    attempts: int
    crashes: int
    record_id: str | None
    failure: str | None
    error_message: str | None
    out_of_order: bool
    published_at: datetime
    ended_at: datetime | None


class AttemptRow(NamedTuple):
    """One attempt that did not simply deliver."""

    attempt: int
    host: str | None
    started_at: datetime | None
    ended_at: datetime
    outcome: str
    error_type: str | None
    error_message: str | None
    record_id: str | None
    retry_at: datetime | None


@dataclass(frozen=True, slots=True)
class MessageDetail:
    """A message with its content and its history."""

    row: MessageRow
    payload: str
    headers: str
    trace: str | None
    history: list[AttemptRow]


class TopicStats(NamedTuple):
    """How a topic is doing; counts stop at a thousand."""

    topic: str
    ready: int
    oldest_ready: timedelta | None
    later: int
    claimed: int
    retrying: int
    dead: int
    needs_review: int
    parked: bool
    parked_by: str | None
    breaker: str
    probe_at: datetime | None


class Figures(NamedTuple):
    """What the checks of an outbox look at, of the last window and of the one before."""

    stale: int
    delivered: int
    throttled: int
    retries: int
    retries_before: int
    dead: int
    dead_before: int
    without_record: Sequence[str]
    two_records: Sequence[str]


def record(kind: Any, row: Any) -> Any:
    """A NamedTuple from the columns of the same names."""
    return kind(*(row[name] for name in kind._fields))
