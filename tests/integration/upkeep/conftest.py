from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg
import pytest

from tests.integration.upkeep.attic import Attic

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def attic(migrated) -> AsyncIterator[Attic]:
    """History written by hand, as old as a test wants it."""
    conn = await asyncpg.connect(migrated)
    attic = Attic(migrated, conn)
    yield attic
    await attic.close()
