"""Which lock service an app uses, from its settings."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, assert_never

from interlock.locks.force_release import AuditedRelease
from interlock.locks.locks import Locks
from interlock.locks.memory import MemoryLocks
from interlock.locks.options import checked_namespace
from interlock.locks.transaction import TransactionHolds

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID

    from interlock.locks.backend import LockBackend
    from interlock.locks.settings import LockSettings
    from interlock.observe.bus import Emit
    from interlock.runtime.settings import RuntimeSettings
    from interlock.store.database import Database


def namespace_of(settings: LockSettings, runtime: RuntimeSettings) -> str:
    """Apps, and environments that share a lock service, are kept apart by it."""
    return checked_namespace(settings.lock_namespace or runtime.name or "default")


def open_locks(
    settings: LockSettings,
    runtime: RuntimeSettings,
    database: Callable[[], Awaitable[Database]],
    *,
    emit: Emit,
    server: Callable[[], UUID | None] = lambda: None,
) -> Locks:
    namespace, name = namespace_of(settings, runtime), runtime.server_name or socket.gethostname()

    async def backend() -> LockBackend:
        return await _backend(settings, namespace, database)

    return Locks(
        backend,
        owner=lambda: f"{name}:{os.getpid()}",  # asked each time: a child that was forked is another process
        server_name=name,
        emit=emit,
        ttl=settings.lock_ttl,
        server=server,
        audited=AuditedRelease(database, namespace, rows=settings.lock_backend == "postgres"),
        transactions=TransactionHolds(settings, namespace, database),
    )


async def _backend(settings: LockSettings, namespace: str, database: Callable[[], Awaitable[Database]]) -> LockBackend:
    match settings.lock_backend:
        case "postgres":
            from interlock.locks.postgres import PostgresLocks  # noqa: PLC0415  only its users pay for it

            return PostgresLocks(await database(), namespace)
        case "redis":
            from interlock.locks.redis import RedisLocks  # noqa: PLC0415  see above

            return RedisLocks(settings.redis_url or "", namespace)
        case "memory":
            return MemoryLocks()
        case _:
            assert_never(settings.lock_backend)
