from __future__ import annotations

import tempfile
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest

from interlock.locks.locks import Locks
from interlock.locks.memory import MemoryLocks
from interlock.locks.postgres import PostgresLocks
from interlock.locks.redis import RedisLocks
from interlock.model.lease import SlotRequest
from interlock.store.database import Database
from interlock.store.settings import StoreSettings
from tests.harness import run_folder
from tests.harness.hygiene import allow_process
from tests.harness.valkey import ValkeyServer, server_binaries

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from interlock.locks.backend import LockBackend
    from interlock.observe.events.base import Event

BINARIES = {binary.name: binary for binary in server_binaries()}


@pytest.fixture(scope="session")
def lock_server_called() -> Iterator[Callable[[str], ValkeyServer]]:
    """Starts each of the machine's Redis-speaking servers once."""
    running: dict[str, ValkeyServer] = {}

    def start(name: str) -> ValkeyServer:
        if name not in running:
            folder = Path(tempfile.mkdtemp(prefix="locks-", dir=run_folder.path()))
            running[name] = ValkeyServer(BINARIES[name], folder)
            allow_process(running[name].pid)
        return running[name]

    yield start
    for server in running.values():
        server.kill()


@pytest.fixture
async def closing() -> AsyncIterator[AsyncExitStack]:
    """What the test opened is closed at its end, in reverse order."""
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def open_postgres(closing) -> Callable[..., PostgresLocks]:
    def door(dsn: str, namespace: str = "test") -> PostgresLocks:
        database = Database(dsn, StoreSettings())
        closing.push_async_callback(database.close)
        closing.push_async_callback((locks := PostgresLocks(database, namespace)).close)
        return locks

    return door


@pytest.fixture
def open_redis(closing) -> Callable[..., RedisLocks]:
    def door(url: str, namespace: str = "test") -> RedisLocks:
        closing.push_async_callback((locks := RedisLocks(url, namespace)).close)
        return locks

    return door


@pytest.fixture(params=["memory", "postgres", *BINARIES])
def open_backend(request, lock_server_called, postgres_dsn, open_postgres, open_redis) -> Callable[..., LockBackend]:
    """Makes backends of each kind in turn; those of one test share a service, apart by namespace."""
    if request.param == "memory":
        shared: dict[str, MemoryLocks] = {}
        return lambda namespace="test": shared.setdefault(namespace, MemoryLocks())
    if request.param in BINARIES:
        url = lock_server_called(request.param).empty_database()
        return lambda namespace="test": open_redis(url, namespace)
    dsn = request.getfixturevalue("migrated")
    return lambda namespace="test": open_postgres(dsn, namespace)


@pytest.fixture
def backend(open_backend) -> LockBackend:
    return open_backend()


@pytest.fixture
def open_locks(closing) -> Callable[..., Locks]:
    """Makes `Locks` over a backend; its events are in `.events`."""

    def over(backend: LockBackend, owner: str = "one", **options) -> Locks:
        async def open_backend() -> LockBackend:
            return backend

        events: list[Event] = []
        locks = Locks(open_backend, owner=lambda: owner, server_name=owner, emit=events.append, **options)
        locks.events = events
        closing.push_async_callback(locks.aclose)
        return locks

    return over


def request(name: str = "x", slots: int = 1, ttl: float = 30.0, start: int = 0, owner: str = "one") -> SlotRequest:
    return SlotRequest(
        name=name, slots=slots, ttl=timedelta(seconds=ttl), token=uuid4(), owner=owner, server=UUID(int=7), start=start
    )
