"""A server that moves only when the test says so: what users write to test their schedules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from interlock import Interlock, every
from interlock.errors import InvalidOption
from interlock.testing import stepper

START = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def app(migrated):
    app = Interlock(migrated)

    @app.train
    async def greet(name: str) -> str:
        return f"hello {name}"

    app.schedule("greet", greet.bind("Ada"), every(hours=1))
    return app


async def count(dsn: str, table: str) -> int:
    conn = await asyncpg.connect(dsn)
    try:
        return await conn.fetchval(f"SELECT count(*) FROM interlock.{table}")
    finally:
        await conn.close()


async def test_a_tick_answers_what_it_did_and_time_moves_only_on_request(app, migrated):
    async with stepper(app, start=START) as step:
        assert step.now == START
        cycle = await step.tick("manifests")
        assert (cycle.led, cycle.queued) == (True, 1)
        assert (await step.tick("manifests")).due == 0
        assert step.advance(timedelta(hours=3)) == step.now == START + timedelta(hours=3)
    assert await count(migrated, "work_queue") == 1


async def test_time_stands_at_the_present_unless_said_otherwise(app, migrated):
    async with stepper(app) as step:
        assert abs(step.now - datetime.now(UTC)) < timedelta(minutes=1)


async def test_a_role_that_does_not_exist_is_named(app):
    async with stepper(app, start=START) as step:
        with pytest.raises(InvalidOption, match="manifests"):
            await step.tick("manifest")


async def test_a_drain_ends_when_nothing_is_left_to_do(app, migrated):
    async with stepper(app, start=START) as step:
        assert await step.drain() > 0
        assert await step.drain() == 0
        assert (await step.tick("manifests")).due == 0
