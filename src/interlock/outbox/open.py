"""A drain as the settings want it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.outbox.doctor import TAG
from interlock.outbox.drain import Drain
from interlock.outbox.lane_set import lane_set_of
from interlock.outbox.lanes import Lanes
from interlock.outbox.postgres import PostgresMessages
from interlock.outbox.reach import EMITS, ONLY

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from interlock.locks.locks import Locks
    from interlock.observe.bus import Emit
    from interlock.outbox.emitter import Emitters
    from interlock.outbox.settings import OutboxSettings
    from interlock.runtime.clock import Clock
    from interlock.store.database import Database


def server_tags(settings: OutboxSettings, emitters: Emitters) -> tuple[str, ...]:
    """How the registry shows what a server delivers: topics and partitions, and with whom it shares lanes."""
    shared = lane_set_of(settings, emitters)
    partitions = (f"{TAG}{partition}" for partition in settings.outbox_partitions)
    topics = (f"{EMITS}{pattern}" for pattern in emitters.patterns())
    only = (f"{ONLY}{pattern}" for pattern in settings.outbox_topics)
    return (*partitions, *topics, *only, *([] if shared is None else [shared.tag]))


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
    shared = lane_set_of(settings, emitters)
    lanes = None if shared is None else Lanes(store, locks, shared, ttl=settings.outbox_lease, emit=emit)
    resolved = emitters.resolved(settings)
    return Drain(store, resolved, settings, emit=emit, server=server, host=host, lanes=lanes)
