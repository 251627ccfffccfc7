"""A server that moves only when the test says so: what users write to test their schedules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from interlock import Interlock, every
from interlock.errors import InvalidOption
from interlock.observe.events.manifest import MarkersRepaired
from interlock.testing import stepper

START = datetime(2030, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Office:
    """An app whose trains write down that they ran."""

    def __init__(self, dsn: str) -> None:
        self.app, self.ran, self.fails = Interlock(dsn), [], 0
        self.repaired: list[MarkersRepaired] = []
        self.app.events.subscribe(self.repaired.append, (MarkersRepaired,))

        @self.app.train
        async def extract(source: str) -> str:
            if self.fails > 0:
                self.fails -= 1
                raise ValueError(source)
            self.ran.append("extract")
            return source

        @self.app.train
        def load() -> None:
            self.ran.append("load")

        ref = self.app.schedule("extract", extract.bind("api"), every(hours=1), max_attempts=3, retry_delay=HOUR / 4)
        ref.then("load", load.bind())


@pytest.fixture
def office(migrated) -> Office:
    return Office(migrated)


async def states(dsn: str) -> list[str]:
    conn = await asyncpg.connect(dsn)
    try:
        return [row[0] for row in await conn.fetch("SELECT state FROM interlock.execution ORDER BY id")]
    finally:
        await conn.close()


async def test_a_tick_answers_what_it_did_and_time_moves_only_on_request(office):
    async with stepper(office.app, start=START) as step:
        assert step.now == START
        cycle = await step.tick("manifests")
        assert (cycle.led, cycle.queued) == (True, 1)
        assert (await step.tick("manifests")).due == 0
        assert office.ran == []
        await step.tick("dispatch")
        await step.tick("worker")
        assert office.ran == ["extract"]
        assert step.advance(3 * HOUR) == step.now == START + 3 * HOUR


async def test_time_stands_at_the_present_unless_said_otherwise(office):
    async with stepper(office.app) as step:
        assert abs(step.now - datetime.now(UTC)) < timedelta(minutes=1)


async def test_a_role_that_does_not_exist_is_named(office):
    async with stepper(office.app, start=START) as step:
        with pytest.raises(InvalidOption, match="manifests"):
            await step.tick("manifest")


async def test_a_drain_runs_what_is_due_and_what_follows_from_it_and_then_ends(office):
    async with stepper(office.app, start=START) as step:
        assert await step.drain() > 0
        assert office.ran == ["extract", "load"]
        assert await step.drain() == 0
        for hours in range(2, 5):
            step.advance(HOUR)
            await step.drain()
            assert office.ran == ["extract", "load"] * hours
        await step.tick("sweep")
    assert office.repaired == []


async def test_a_failed_run_waits_for_its_time_and_then_runs_again(office, migrated):
    office.fails = 1
    async with stepper(office.app, start=START) as step:
        await step.drain()
        assert await states(migrated) == ["failed"]
        step.advance(HOUR / 4 - timedelta(microseconds=1))
        await step.drain()
        assert office.ran == []
        step.advance(timedelta(microseconds=1))
        await step.drain()
        assert office.ran == ["extract", "load"]
        await step.tick("sweep")
    assert await states(migrated) == ["failed", "completed", "completed"]
    assert office.repaired == []
