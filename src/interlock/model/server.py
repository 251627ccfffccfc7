from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from uuid import UUID

    from interlock.model.lifecycle import ServerState


class Role(StrEnum):
    """What a server may be asked to do; recovery and upkeep are always on."""

    MANIFESTS = "manifests"
    WORKER = "worker"
    DISPATCH = "dispatch"
    TIMERS = "timers"
    OUTBOX = "outbox"
    RUNNER = "runner"
    """Runs what is submitted to it; it has no other role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProfile:
    """What a server says of itself; its id is drawn anew at every registration."""

    name: str
    host: str
    pid: int
    version: str
    app: str | None = None
    roles: tuple[str, ...] = ()
    trains: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    slots: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow:
    """A server as the database knows it."""

    id: UUID
    profile: ServerProfile
    state: ServerState
    started_at: datetime
    ended_at: datetime | None
    renewed_at: datetime
    heartbeat_age: timedelta
    leased: bool
    """False also of one that did not leave and renews no more, until another marks it lost."""


@dataclass(frozen=True, slots=True)
class LostServer:
    id: UUID
    name: str
