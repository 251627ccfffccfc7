"""Work that failed beyond its attempts and waits for a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from interlock.model.lifecycle import DeadLetterState


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    id: int
    state: DeadLetterState
    reason: str
    kind: str
    train: str
    manifest_id: int | None
    external_id: str | None
    first_entry_id: int
    execution_id: int | None
    group: str | None
    attempts: int
    crashes: int
    failure: str | None
    junction: str | None
    error_type: str | None
    error_message: str | None
    created_at: datetime
    resolved_at: datetime | None
    resolved_by: str | None
    note: str | None
    requeued_entry_id: int | None


class DeadLetterFilter(NamedTuple):
    """Which of the open ones are meant; what is None does not narrow the choice."""

    ids: Sequence[int] | None = None
    train: str | None = None
    manifest: str | None = None
    group: str | None = None
    failure: str | None = None
