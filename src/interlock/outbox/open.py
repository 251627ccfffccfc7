"""A drain as the settings want it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.outbox.doctor import TAG
from interlock.outbox.drain import Drain
from interlock.outbox.lanes import Lanes
from interlock.outbox.postgres import PostgresMessages

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from interlock.locks.locks import Locks
    from interlock.observe.bus import Emit
    from interlock.outbox.emitter import Emitters
    from interlock.outbox.settings import OutboxSettings
    from interlock.runtime.clock import Clock
    from interlock.store.database import Database


def server_tags(settings: OutboxSettings) -> tuple[str, ...]:
    """How the registry shows which partitions a server delivers."""
    return tuple(f"{TAG}{partition}" for partition in settings.outbox_partitions)


def open_drain(
    database: Database,
    emitters: Emitters,
    settings: OutboxSettings,
    locks: Locks,
    *,
    emit: Emit,
    clock: Clock,
    server: Callable[[], UUID | None] = lambda: None,
    host: str | None = None,
) -> Drain:
    store = PostgresMessages(database, clock=clock, host=host)
    lanes = None
    if settings.outbox_mode != "claim":
        count = 1 if settings.outbox_mode == "single" else settings.outbox_lanes
        name = "outbox:" + ",".join(sorted(settings.outbox_partitions))
        lanes = Lanes(store, locks, name=name, lanes=count, ttl=settings.outbox_lease, emit=emit)
    resolved = emitters.resolved(settings)
    return Drain(store, resolved, settings, emit=emit, server=server, host=host, lanes=lanes)
