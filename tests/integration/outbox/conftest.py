from __future__ import annotations

import pytest

from tests.integration.outbox.places import MemoryPlace, PostgresPlace


@pytest.fixture(params=["memory", "postgres"])
async def place(request):
    """Each place where messages can be kept, in turn."""
    if request.param == "memory":
        place = MemoryPlace()
    else:
        place = await PostgresPlace(request.getfixturevalue("migrated")).open()
    yield place
    await place.close()
