"""Records of executions: what a worker is handed, and what it hears about what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from uuid import UUID


class Claim(NamedTuple):
    """One execution as the claim hands it over, in the order of the columns that the statement returns."""

    execution_id: int
    train: str
    input: str
    attempt: int
    first_entry_id: int
    timeout: timedelta | None
    started_at: datetime
    manifest_id: int | None
    fire_key: str | None
    manifest: str | None
    keyed: bool

    @property
    def is_plain(self) -> bool:
        """Whether its success leaves nothing to write but the output."""
        return self.manifest_id is None and not self.keyed


class Reservation(NamedTuple):
    """Free slots of one worker that somebody is about to fill, and the token under which it will hold what it gets."""

    server: UUID
    host: str
    token: UUID
    room: int


class Interruption(NamedTuple):
    """What happened to a held execution from outside: a request to stop, or the loss of it."""

    execution_id: int
    cancel_cause: str | None
    lost: bool


class Abandoned(NamedTuple):
    """An active execution whose server ended."""

    execution_id: int
    claim_token: UUID | None
    server_id: UUID


class Scope(NamedTuple):
    """What a person wants to cancel; exactly one of them is set."""

    lineage: int | None = None
    manifest_id: int | None = None
    group_id: int | None = None


class Child(NamedTuple):
    """A dormant manifest that a run of its parent may activate."""

    manifest_id: int
    train: str


class Activation(NamedTuple):
    """A dormant child that was asked for; no entry when it was switched off, queued or active."""

    manifest_id: int
    train: str
    entry_id: int | None


class Policy(NamedTuple):
    """How often and when work is tried again where neither the caller nor the manifest says so."""

    max_attempts: int
    max_crashes: int
    retry_delay: timedelta
    max_retry_delay: timedelta
    retry_backoff: float
    timeout: timedelta | None
