"""A server that moves only when the test says so: what users write to test their schedules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import asyncpg
import pytest

from interlock import Interlock, every
from interlock.errors import InvalidOption
from interlock.model.server import ServerProfile
from interlock.observe.events.manifest import MarkersRepaired
from interlock.store.server import Servers
from interlock.store.sql import Catalog
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
        assert len((await step.tick("dispatch")).dispatched) == 1
        assert (await step.tick("worker")).jobs == 1
        assert (await step.tick("worker")).jobs == 0
        assert office.ran == ["extract"]
        assert (await step.tick("sweep")).repaired == 0
        assert (await step.tick("recovery")) == (0, 0)
        assert (await step.tick("retention")).rows == {}
        assert step.advance(3 * HOUR) == step.now == START + 3 * HOUR


def test_without_an_event_loop_it_does_the_same(office):
    with stepper(office.app, start=START) as step:
        assert step.drain() > 0
        assert office.ran == ["extract", "load"]
        assert step.advance(HOUR) == step.now == START + HOUR
        assert step.tick("manifests").queued == 1
        handle = office.app.trains.get("load").enqueue()
        step.drain()
        assert handle.status() == "completed"
    assert office.ran == ["extract", "load"] * 2 + ["load"]


async def test_time_stands_at_the_present_unless_said_otherwise(office):
    async with stepper(office.app) as step:
        assert abs(step.now - datetime.now(UTC)) < timedelta(minutes=1)


async def test_time_is_the_databases_again_when_the_stepper_is_done(office):
    async with stepper(office.app, start=START):
        pass
    async with office.app:
        handle = await office.app.trains.get("load").aenqueue()
        entry = await office.app.views.entry(handle.id)
    assert abs(entry.line.created_at - datetime.now(UTC)) < timedelta(minutes=1)


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


async def test_a_drain_delivers_what_trains_published_also_in_order(office, migrated):
    app, sent = office.app, []

    @app.outbox.emitter("orders")
    async def send(message, context) -> None:
        sent.append(message.payload)

    @app.train
    async def order(first: int) -> None:
        conn = await asyncpg.connect(migrated)
        async with conn.transaction():
            for number in range(first, first + 3):
                await app.outbox.apublish(conn, "orders", number, key="ada")
        await conn.close()

    async with stepper(app, start=START) as step:
        await order.aenqueue(1)
        assert await step.drain() > 0
        assert sent == [1, 2, 3]
        await order.aenqueue(4)
        await step.drain()
        assert sent == [1, 2, 3, 4, 5, 6]
        assert await step.drain() == 0


async def test_a_drain_without_an_emitter_leaves_messages_alone(office, migrated):
    conn = await asyncpg.connect(migrated)
    async with stepper(office.app, start=START) as step:
        await office.app.outbox.apublish(conn, "orders", {})
        await step.drain()
    assert await conn.fetchval("SELECT state FROM interlock.outbox") == "pending"
    await conn.close()


async def test_a_drain_takes_back_what_a_lost_server_held(office, migrated):
    conn = await asyncpg.connect(migrated)
    async with stepper(office.app, start=START) as step:
        await step.tick("manifests")
        await step.tick("dispatch")
        await held_by_a_lost_server(conn)
        await step.drain()
        assert office.ran == ["extract", "load"]
        assert (await step.tick("recovery")).executions == 0
    await conn.close()
    assert await states(migrated) == ["failed", "completed", "completed"]


async def held_by_a_lost_server(conn: asyncpg.Connection) -> None:
    """As if another server had claimed everything and then fallen silent."""
    lost = uuid4()
    profile = ServerProfile(name="s", host="h", pid=1, version="0")
    await Servers(Catalog("interlock")).register(conn, lost, profile, timedelta(milliseconds=1))
    await conn.execute("DELETE FROM interlock.background_job")
    await conn.execute(
        "UPDATE interlock.execution SET state = 'in_progress', server_id = $1, claim_token = gen_random_uuid(),"
        " started_at = now()",
        lost,
    )


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
