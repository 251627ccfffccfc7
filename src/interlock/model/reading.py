"""What people read: one line per thing for lists, without payloads, and everything about one thing for its page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from interlock.model.dead_letter import DeadLetter

T = TypeVar("T")

COUNTED_UP_TO = 10_000


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some lines, the cursor of the page that follows, and how many there are, counted up to a limit."""

    lines: Sequence[T]
    next: str | None
    total: int | None = None

    @property
    def is_counted(self) -> bool:
        """Whether the total is exact, and not "so many or more"."""
        return self.total is not None and self.total < COUNTED_UP_TO


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestLine:
    external_id: str
    app: str | None
    origin: str
    train: str
    group: str
    group_enabled: bool
    schedule_kind: str
    schedule: Any
    time_zone: str
    parent: str | None
    enabled: bool
    planned_at: datetime | None
    next_run_at: datetime | None
    last_success_at: datetime | None
    queued: bool
    active: bool
    dead_lettered: bool
    write_failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestDetail:
    """A manifest with all that is stored of it, and what waits, runs and ran lately."""

    id: int
    external_id: str
    app: str | None
    origin: str
    train: str
    group: str
    group_enabled: bool
    schedule_kind: str
    schedule: Any
    time_zone: str
    exclusions: Any
    variance: timedelta
    misfire: str
    misfire_threshold: timedelta
    parent: str | None
    enabled: bool
    priority: int | None
    max_attempts: int | None
    retry_delay: timedelta | None
    max_retry_delay: timedelta | None
    retry_backoff: float | None
    timeout: timedelta | None
    input: Any
    declared: Any
    declared_at: datetime | None
    planned_at: datetime | None
    planned_offset: timedelta
    next_run_at: datetime | None
    last_success_execution_id: int | None
    last_success_at: datetime | None
    last_resolved_at: datetime | None
    consumed_execution_id: int | None
    write_error: str | None
    write_failures: int
    write_retry_at: datetime | None
    open_dead_letter_id: int | None
    created_at: datetime
    updated_at: datetime
    children: list[str]
    queued: Sequence[EntryLine] = ()
    executions: Sequence[ExecutionLine] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestPlan:
    """What decides when a manifest fires, and after whom."""

    external_id: str
    enabled: bool
    train: str
    group: str
    parent: str | None
    schedule_kind: str
    schedule: Any
    time_zone: str
    exclusions: Any
    planned_at: datetime | None
    planned_offset: timedelta
    group_enabled: bool
    paused: bool
    dead_letter_id: int | None
    """The open dead letter that keeps it from being queued."""
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredLine:
    """What code last said of a manifest, and its switch as operators left it."""

    external_id: str
    app: str | None
    origin: str
    enabled: bool
    declared: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLine:
    """A group with how much of its capacity is used; counts end at a limit."""

    id: int
    name: str
    enabled: bool
    priority: int
    max_active_jobs: int | None
    declared: Any
    manifests: int
    active: int
    ready: int
    later: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryLine:
    id: int
    state: str
    kind: str
    train: str
    manifest: str | None
    group: str | None
    attempt: int
    max_attempts: int
    priority: int
    group_priority: int
    created_at: datetime
    scheduled_at: datetime
    ready: bool
    key: str | None
    execution_id: int | None
    left_at: datetime | None
    failure: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionLine:
    id: int
    state: str
    kind: str
    train: str
    manifest: str | None
    group: str | None
    attempt: int
    max_attempts: int
    entry_id: int
    first_entry_id: int
    host: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    failure: str | None
    junction: str | None
    junction_index: int | None
    junction_total: int | None
    cancel_cause: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """Somebody ran an execution again, or queued its dead letter again."""

    action: str
    actor: str
    at: datetime
    entry_id: int
    execution_id: int | None
    state: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionDetail:
    """One attempt with its input, its end, its waits, and the other attempts at the same work."""

    line: ExecutionLine
    fire_key: str | None
    crashes: int
    timeout: timedelta | None
    retry_delay: timedelta
    submitter: str | None
    server_id: UUID | None
    queued_at: datetime | None
    scheduled_at: datetime | None
    cancel_requested_at: datetime | None
    cancel_actor: str | None
    previous_execution_id: int | None
    caused_by_execution_id: int | None
    input: Any
    output: Any
    error_type: str | None
    error_message: str | None
    traceback: str | None
    trace: str | None
    attempts: Sequence[ExecutionLine] = ()
    waiting: Sequence[EntryLine] = ()
    dead_letters: Sequence[DeadLetter] = ()
    reruns: Sequence[Rerun] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDetail:
    line: EntryLine
    first_entry_id: int
    previous_execution_id: int | None
    caused_by_execution_id: int | None
    dead_letter_id: int | None
    crashes: int
    timeout: timedelta | None
    input: Any
    attempts: Sequence[ExecutionLine] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterDetail:
    letter: DeadLetter
    input: Any
    traceback: str | None
    attempts: Sequence[ExecutionLine] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLine:
    id: int
    at: datetime
    actor: str
    via: str
    action: str
    target_kind: str
    target: str
    before: Any
    after: Any
    note: str | None
