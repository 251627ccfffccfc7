from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from interlock.errors import LockServiceUnavailable
from interlock.locks.locks import Locks
from interlock.locks.memory import MemoryLocks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


class Flaky(MemoryLocks):
    """A lock service whose answers a test can spoil."""

    def __init__(self) -> None:
        super().__init__()
        self.down = False
        self.extends = self.releases = 0

    async def acquire(self, request):
        self._answer()
        return await super().acquire(request)

    async def extend(self, held):
        self.extends += 1
        self._answer()
        return await super().extend(held)

    async def release(self, name, token, at_least):
        self.releases += 1
        self._answer()
        return await super().release(name, token, at_least)

    def _answer(self) -> None:
        if self.down:
            raise LockServiceUnavailable(where="here", reason="it is down")


@pytest.fixture
def service() -> Flaky:
    return Flaky()


@pytest.fixture
async def open_locks() -> AsyncIterator[Callable[..., Locks]]:
    async with AsyncExitStack() as closing:

        def over(backend, owner: str = "one", **options) -> Locks:
            async def open_backend():
                return backend

            events = []
            locks = Locks(open_backend, owner=lambda: owner, server_name=owner, emit=events.append, **options)
            locks.events = events
            closing.push_async_callback(locks.aclose)
            return locks

        yield over


@pytest.fixture
def locks(open_locks, service) -> Locks:
    return open_locks(service)
