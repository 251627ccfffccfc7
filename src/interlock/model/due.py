"""A manifest whose time has come, as the manager sees it, and what it decides about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from interlock.model.plan import Misfire, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class DueManifest:
    """A read-only view: no payload, and of runs, entries and dead letters only what a decision needs."""

    id: int
    version: str
    external_id: str
    enabled: bool
    train: str
    group_id: int
    group_priority: int
    group_last_queued_at: datetime | None
    schedule_kind: str
    schedule: str
    time_zone: str
    exclusions: str
    variance: timedelta
    misfire: Misfire
    misfire_threshold: timedelta
    priority: int | None
    max_attempts: int | None
    retry_delay: timedelta | None
    max_retry_delay: timedelta | None
    retry_backoff: float | None
    timeout: timedelta | None
    planned_at: datetime | None
    planned_offset: timedelta
    next_run_at: datetime
    consumed_execution_id: int | None
    write_failures: int
    parent_success_id: int | None
    failed_count: int
    has_awaiting_dead_letter: bool
    has_queued_work: bool
    has_active_execution: bool
    has_successful_execution: bool
    now: datetime


@dataclass(frozen=True, slots=True)
class PlannedFire:
    """Queue it; `next` is its plan after this fire, `consumed` the success of its parent that the run stands for."""

    manifest: DueManifest
    fire_key: str
    next: Plan | None = None
    consumed: int | None = None


@dataclass(frozen=True, slots=True)
class Blocked:
    """Something has to end first; whoever ends it brings the marker back."""

    manifest: DueManifest
    reason: str


@dataclass(frozen=True, slots=True)
class LaidDown:
    """There is nothing to wait for: no plan, or no new success of its parent."""

    manifest: DueManifest
    reason: str


@dataclass(frozen=True, slots=True)
class Replanned:
    """Not this time; look again at its next plan."""

    manifest: DueManifest
    reason: str
    next: Plan


@dataclass(frozen=True, slots=True)
class Refused:
    """It cannot be queued as it is stored; set aside with the error, and tried again later."""

    manifest: DueManifest
    error: Exception


Verdict = PlannedFire | Blocked | LaidDown | Replanned | Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPolicy:
    """What travels with an entry: resolved once, so that a server that never heard of the train can retry it."""

    priority: int
    max_attempts: int
    retry_delay: timedelta
    max_retry_delay: timedelta
    retry_backoff: float
    timeout: timedelta | None


@dataclass(frozen=True, slots=True)
class FirstEntry:
    """The first entry of a fire, ready to be written."""

    fire: PlannedFire
    policy: EntryPolicy

    @property
    def attempt(self) -> int:
        """It continues the count of failures since the last success or resolution."""
        return self.fire.manifest.failed_count + 1
