"""Bodies that do what no body should: the process they run in goes on, and ends when it is told to."""

from __future__ import annotations

import asyncio
import sys

import pytest

from interlock import Interlock
from interlock.errors import WorkDeadLettered
from tests.harness.child import tell
from tests.harness.profile import SHORT_LEASES


def misbehaving(dsn: str) -> Interlock:
    app = Interlock(dsn, **SHORT_LEASES)

    @app.train(max_attempts=1)
    async def exits_in_a_task() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(exits())

    @app.train
    async def heeds_nothing() -> None:
        tell("running")
        while True:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                tell("met")

    @app.train
    async def fine() -> str:
        return "fine"

    return app


async def exits() -> None:
    sys.exit(3)


def serve(dsn: str) -> None:
    app = misbehaving(dsn)
    app.run(["worker"])
    tell("ended")


@pytest.fixture
async def shop(migrated):
    async with misbehaving(migrated) as app:
        yield app


async def test_a_task_of_a_body_that_exits_fails_the_body_and_not_the_server(fleet, migrated, shop):
    server = fleet.start(f"{__name__}:serve", migrated)
    failing = await shop.trains.get("exits_in_a_task").aenqueue()
    with pytest.raises(WorkDeadLettered, match="SystemExit: 3"):
        await failing.aresult(timeout=60)
    assert await (await shop.trains.get("fine").aenqueue()).aresult(timeout=60) == "fine"
    assert server.returncode is None
    server.terminate()
    assert await server.wait() == 0


async def test_a_body_that_heeds_no_cancellation_is_handed_back_and_does_not_keep_the_process(fleet, works, shop):
    server = fleet.start(f"{__name__}:serve", works.dsn)
    await shop.trains.get("heeds_nothing").aenqueue()
    await server.expect("running", 60)
    server.terminate()
    await server.expect("met")
    assert await server.wait(60) == 0
    [row] = await works.executions("state, attempt, crashes")
    assert tuple(row) == ("pending", 1, 0)
