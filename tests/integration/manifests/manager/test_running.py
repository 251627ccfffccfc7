"""The manager as a part of a running server: it ticks by itself, is woken, and only where its role is wanted."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from interlock import Interlock, every
from interlock.observe.events.manifest import ManifestsLed, MarkersRepaired
from tests.harness.profile import SHORT_LEASES
from tests.harness.waiting import eventually


class Office:
    """An app whose train counts its runs; nothing but notices and markers wakes its manager."""

    def __init__(self, dsn: str) -> None:
        patient = {"manifest_manager_polling_interval": timedelta(seconds=60)}
        self.app = Interlock(dsn, **{**SHORT_LEASES, **patient})
        self.runs, self.led, self.repaired = 0, 0, []
        self.app.events.subscribe(self._lead, (ManifestsLed,))
        self.app.events.subscribe(self.repaired.append, (MarkersRepaired,))

        @self.app.train
        async def count() -> None:
            self.runs += 1

        self.count = count

    def _lead(self, _: object) -> None:
        self.led += 1


@pytest.fixture
def office(migrated) -> Office:
    return Office(migrated)


async def test_a_running_server_fires_at_its_markers_without_polling(office, migrated):
    office.app.schedule("often", office.count.bind(), every(milliseconds=200))
    async with office.app.running():
        await eventually(lambda: office.runs >= 5, 60)
    assert office.repaired == []
    conn = await asyncpg.connect(migrated)
    keys = await conn.fetch(
        "SELECT fire_key FROM interlock.work_queue WHERE kind = 'scheduled' AND first_entry_id IS NULL"
    )
    await conn.close()
    assert len(keys) == len(set(keys)) >= 5


async def test_a_manifest_that_is_written_at_run_time_is_noticed_at_once(office):
    async with office.app.running():
        await eventually(lambda: office.led, 60)
        await office.app.aput_schedule("now", office.count.bind(), every(hours=1))
        await eventually(lambda: office.runs == 1, 60)


async def test_a_success_wakes_the_manager_for_the_dependents(office):
    @office.app.train
    async def follow() -> None:
        done.set()

    done = asyncio.Event()
    office.app.schedule("first", office.count.bind(), every(hours=1)).then("second", follow.bind())
    async with office.app.running():
        await asyncio.wait_for(done.wait(), 60)


async def test_a_server_without_the_role_manages_nothing(office):
    office.app.schedule("often", office.count.bind(), every(milliseconds=100))
    async with office.app.running(["worker"]):
        await office.count.aenqueue()
        await eventually(lambda: office.runs == 1, 60)
    assert office.led == 0
