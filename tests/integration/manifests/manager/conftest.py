from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from interlock import failpoints
from tests.integration.manifests.manager.world import open_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.integration.manifests.manager.world import World


@pytest.fixture
async def world(migrated) -> AsyncIterator[World]:
    async with open_world(migrated) as world:
        yield world
    failpoints.disarm()
