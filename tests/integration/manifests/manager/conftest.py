from __future__ import annotations

from datetime import timedelta
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


PATIENT = timedelta(minutes=1)  # so that a busy machine does not end a tick that a test holds


@pytest.fixture
async def world(migrated) -> AsyncIterator[World]:
    async with open_world(migrated, tick_idle_timeout=PATIENT) as world:
        yield world
    failpoints.disarm()
