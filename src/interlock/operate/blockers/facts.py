"""All that the blockers look at; loaded once, then only read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from interlock.model.exclusion import Exclusion
    from interlock.model.lease import Holder
    from interlock.store.explaining import (
        CapHolder,
        EntryFacts,
        ExecutionFacts,
        ManifestFacts,
        MessageFacts,
        OpenTransaction,
        Surroundings,
    )
    from interlock.store.migrate import SchemaStatus
    from interlock.store.timer import TimerRow


class Phase(StrEnum):
    """How far the thing in question has come."""

    PLANNED = "planned"
    QUEUED = "queued"
    DISPATCHED = "dispatched"
    OVER = "over"
    TIMER = "timer"
    MESSAGE = "message"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerFacts:
    row: TimerRow
    holders: Sequence[Holder] | None
    """None: the lock service did not answer, and `lock_error` says why."""
    lock_error: str | None = None
    exclusions: Sequence[Exclusion] = ()
    time_zone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    around: Surroundings
    schema: SchemaStatus
    manifest: ManifestFacts | None = None
    entry: EntryFacts | None = None
    execution: ExecutionFacts | None = None
    timer: TimerFacts | None = None
    message: MessageFacts | None = None
    in_order: bool = False
    dead_hold: bool = True
    """Whether the rest of a key waits behind a dead message."""
    ahead: int = 0
    holders: Sequence[CapHolder] = ()
    transactions: Sequence[OpenTransaction] = ()
    max_active_jobs: int | None = None
    uncounted_trains: Collection[str] = ()
    stall_after: timedelta = timedelta(seconds=15)
    asked_for_manifest: bool = False

    @property
    def now(self) -> datetime:
        return self.around.now

    @property
    def phase(self) -> Phase:
        if self.timer is not None:
            return Phase.TIMER
        if self.message is not None:
            return Phase.MESSAGE
        if self.entry is not None and self.entry.state == "queued":
            return Phase.QUEUED
        if self.execution is not None and self.execution.ended_at is None:
            return Phase.DISPATCHED
        return Phase.PLANNED if self.asked_for_manifest else Phase.OVER

    @property
    def planned(self) -> ManifestFacts | None:
        """The manifest, while the question is why it is not queued."""
        return self.manifest if self.phase is Phase.PLANNED else None

    @property
    def queued(self) -> EntryFacts | None:
        """The entry, while the question is why it is not dispatched."""
        return self.entry if self.phase is Phase.QUEUED else None

    @property
    def dispatched(self) -> ExecutionFacts | None:
        """The execution, while the question is why it has not ended."""
        return self.execution if self.phase is Phase.DISPATCHED else None

    @property
    def train(self) -> str:
        found = self.entry or self.execution or self.manifest
        return "" if found is None else found.train
