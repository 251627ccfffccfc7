from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from interlock import failpoints
from tests.harness.rounds import play_controls_ten_times, round_of_control
from tests.integration.manifests.manager.world import open_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.integration.manifests.manager.world import World

__all__ = ["round_of_control"]
pytest_generate_tests = play_controls_ten_times


@pytest.fixture
async def world(migrated) -> AsyncIterator[World]:
    async with open_world(migrated) as world:
        yield world
    failpoints.disarm()
