from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg
import pytest

from interlock import Interlock
from interlock.model.lifecycle import ExecutionState
from interlock.model.outcome import Ending
from interlock.store.database import Database
from interlock.store.execution import Executions
from interlock.store.settings import StoreSettings
from tests.integration.worker.yard import Yard

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


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
async def app(migrated) -> AsyncIterator[Interlock]:
    app = Interlock(migrated, name="shop")
    yield app
    await app.aclose()


@pytest.fixture
def ends(yard, door) -> Callable[..., Awaitable[int | None]]:
    """Ends an execution; answers its dead letter, if there is one."""

    async def end(run: int, state: ExecutionState = ExecutionState.COMPLETED, failure: str | None = None) -> int | None:
        ending = Ending(
            run,
            await yard.claimed(run),
            state,
            failure=failure,
            output='"done"' if state is ExecutionState.COMPLETED else None,
            error_type="ValueError" if failure else None,
            error_message="no" if failure else None,
        )
        async with door.transaction() as conn:
            [ended] = await Executions(door.sql).end(conn, [ending], now=None)
        return ended.dead_letter_id

    return end


@pytest.fixture
def dies(yard, ends) -> Callable[..., Awaitable[int]]:
    """Writes a dead letter; answers it."""

    async def die(train: str = "work", failure: str = "error", **options) -> int:
        run = await yard.dispatch(train, attempt=3, **options)
        return await ends(run, ExecutionState.FAILED, failure)

    return die
