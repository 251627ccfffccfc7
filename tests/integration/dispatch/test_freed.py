"""Capacity that is freed on one server is used by another at once, not at its next look."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from interlock import Interlock
from interlock.dispatch.component import DispatchComponent
from interlock.errors import ResultTimeout
from interlock.observe.events import DispatchTicked
from tests.harness.profile import SHORT_LEASES
from tests.harness.waiting import eventually

SELDOM = {**SHORT_LEASES, "job_dispatcher_polling_interval": timedelta(minutes=10)}


class Two:
    """Two servers that share a group with a cap of one, and know a train each."""

    def __init__(self, dsn: str) -> None:
        self.apps = [Interlock(dsn, **SELDOM) for _ in range(2)]
        self.go_on, self.looked = asyncio.Event(), []
        self.apps[1].events.subscribe(self.looked.append, (DispatchTicked,))
        for app in self.apps:
            app.group("narrow", max_active_jobs=1)

        @self.apps[0].train(group="narrow")
        async def holds() -> str:
            await self.go_on.wait()
            return "held"

        @self.apps[1].train(group="narrow")
        async def waits() -> str:
            return "waited"

        self.holds, self.waits = holds, waits


@pytest.fixture
async def handed_over(migrated):
    """The handle on what waits on one server, at the moment when the other frees the only place."""
    two = Two(migrated)
    async with two.apps[0].running(), two.apps[1].running():
        held = await two.holds.aenqueue()
        await eventually(lambda: _status(held, "in_progress"), 60, "the first job")
        waiting = await two.waits.aenqueue()
        await eventually(lambda: any(cycle.skipped for cycle in two.looked), 60, "a look that finds no place")
        two.go_on.set()
        assert await held.aresult(timeout=60) == "held"
        yield waiting


async def _status(handle, status: str) -> bool:
    return await handle.astatus() == status


async def test_the_end_of_a_job_wakes_those_who_wait_for_its_place(handed_over):
    assert await handed_over.aresult(timeout=60) == "waited"


@pytest.fixture
def says_nothing(monkeypatch):
    monkeypatch.setattr(DispatchComponent, "freed", lambda self: self._loop.wake())


async def test_control_a_server_that_says_nothing_leaves_the_other_waiting(says_nothing, handed_over):
    with pytest.raises(ResultTimeout):
        await handed_over.aresult(timeout=2)
