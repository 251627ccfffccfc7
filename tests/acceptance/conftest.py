from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg
import pytest

from tests.harness.rounds import play_controls_ten_times, round_of_control
from tests.harness.working import LEDGER, WorkingFleet, client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from interlock import Interlock

__all__ = ["round_of_control"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "works" in metafunc.fixturenames and "fault" not in metafunc.fixturenames:
        play_controls_ten_times(metafunc)


@pytest.fixture
async def works(fleet, migrated) -> AsyncIterator[WorkingFleet]:
    """Servers with workers in other processes, on a database with our schema and a ledger."""
    conn = await asyncpg.connect(migrated)
    await conn.execute(LEDGER)
    yield WorkingFleet(fleet, migrated, conn)
    await conn.close()


@pytest.fixture
async def shop(migrated) -> AsyncIterator[Interlock]:
    """A client of the same app, in the test's own process."""
    async with client(migrated) as app:
        yield app
