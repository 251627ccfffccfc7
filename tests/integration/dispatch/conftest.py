from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import asyncpg
import pytest

from tests.harness.rounds import play_controls_ten_times, round_of_control
from tests.integration.dispatch.ramp import Ramp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["round_of_control"]
pytest_generate_tests = play_controls_ten_times


@pytest.fixture
async def conn(migrated) -> AsyncIterator[asyncpg.Connection]:
    conn = await asyncpg.connect(migrated)
    yield conn
    await conn.close()


@pytest.fixture
async def ramp(migrated, conn) -> AsyncIterator[Ramp]:
    async with AsyncExitStack() as stack:
        yield Ramp(migrated, conn, stack)
