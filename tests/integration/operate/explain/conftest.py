from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import asyncpg
import pytest

from tests.integration.operate.explain.station import Station

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def station(migrated) -> AsyncIterator[Station]:
    """An app on a database of its own, the database seen from outside, and a server that moves on request."""
    conn = await asyncpg.connect(migrated)
    async with AsyncExitStack() as stack:
        yield Station(migrated, conn, stack)
    await conn.close()
