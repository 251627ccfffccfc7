from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta
from typing import TYPE_CHECKING

import asyncpg
import pytest

from interlock import Interlock
from interlock.store.database import Database
from interlock.store.execution import Executions
from interlock.store.settings import StoreSettings
from tests.harness.profile import SHORT_LEASES
from tests.harness.rounds import play_controls_ten_times, round_of_control
from tests.harness.waiting import eventually
from tests.integration.worker.yard import Yard

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["round_of_control"]
pytest_generate_tests = play_controls_ten_times


@pytest.fixture
async def yard(migrated) -> AsyncIterator[Yard]:
    conn = await asyncpg.connect(migrated)
    yield Yard(conn)
    await conn.close()


@pytest.fixture
async def door(migrated) -> AsyncIterator[Database]:
    database = Database(migrated, StoreSettings())
    yield database
    await database.close()


@pytest.fixture
def executions(door) -> Executions:
    return Executions(door.sql)


class Works:
    """An app with a worker, and what it said."""

    def __init__(self, dsn: str, yard: Yard, stack: AsyncExitStack) -> None:
        self.dsn, self.yard, self._stack = dsn, yard, stack
        self.app = self.new_app()

    def new_app(self, **options) -> Interlock:
        app = Interlock(self.dsn, **{**SHORT_LEASES, "worker_polling_interval": timedelta(seconds=0.05), **options})
        self.events: list = getattr(self, "events", [])
        app.events.subscribe(self.events.append)
        return app

    async def start(self, app: Interlock | None = None):
        return await self._stack.enter_async_context((app or self.app).running(["worker"]))

    def told(self, kind: type) -> list:
        return [event for event in tuple(self.events) if isinstance(event, kind)]

    async def ended(self, execution: int, timeout: float = 60.0) -> dict:  # noqa: ASYNC109  the timeout names what was awaited
        async def is_over() -> bool:
            return (await self.yard.execution(execution))["ended_at"] is not None

        await eventually(is_over, timeout, f"the end of execution {execution}")
        return await self.yard.execution(execution)

    async def reaches(self, execution: int, state: str, timeout: float = 60.0) -> None:  # noqa: ASYNC109  see ended
        async def is_there() -> bool:
            return (await self.yard.execution(execution))["state"] == state

        await eventually(is_there, timeout, f"execution {execution} {state}")


@pytest.fixture
async def works(migrated, yard) -> AsyncIterator[Works]:
    async with AsyncExitStack() as stack:
        yield Works(migrated, yard, stack)
