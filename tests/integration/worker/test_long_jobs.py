"""Age is no reason to give a job up: while its server lives, the manager leaves it alone, for hours."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import uuid4

import pytest

from interlock import every
from interlock.observe.events import SettleRefused, StaleReaped
from interlock.testing import stepper

HOURS = timedelta(hours=3)
LOST = """
INSERT INTO interlock.server (id, name, roles, trains, tags, slots, host, pid, version, state, lease, lease_until,
    renewed_at, steady_since, started_at, ended_at)
VALUES ($1, 'x', '{}', '{}', '{}', 1, 'h', 1, '0', 'lost', '1 s', now(), now(), now(), now(), now())
"""


@pytest.fixture
def long_job(works, yard):
    """A job of a manifest, three hours old by the clock of all junctions, in the hands of a living worker."""
    begun, over = asyncio.Event(), asyncio.Event()

    @works.app.train(timeout=timedelta(hours=9))
    async def work() -> str:
        begun.set()
        await over.wait()
        return "done"

    works.app.schedule("long", work.bind(), every(hours=24))

    @asynccontextmanager
    async def long_job():
        async with stepper(works.app) as step:
            await works.app.atrigger("long")
            await step.tick("dispatch")
            working = asyncio.create_task(step.tick("worker"))
            await asyncio.wait_for(begun.wait(), 60)
            step.advance(HOURS)
            yield step
            over.set()
            await working

    return long_job


async def state(yard) -> tuple[str, str | None]:
    row = await yard.conn.fetchrow("SELECT state, failure FROM interlock.execution ORDER BY id DESC LIMIT 1")
    return row["state"], row["failure"]


async def test_a_live_job_is_not_reaped_after_three_hours(works, yard, long_job):
    async with long_job() as step:
        for role in ("manifests", "recovery", "sweep", "manifests"):
            await step.tick(role)
        assert await state(yard) == ("in_progress", None)
    assert await state(yard) == ("completed", None)
    assert works.told(StaleReaped) == []


async def test_control_a_job_of_the_same_age_whose_server_is_gone_is_reaped(works, yard, long_job):
    async with long_job() as step:
        await yard.conn.execute(LOST, server := uuid4())
        await yard.conn.execute("UPDATE interlock.execution SET server_id = $1", server)
        await step.tick("manifests")
        assert await state(yard) == ("failed", "stale_in_progress")
        assert len(works.told(StaleReaped)) == 1
    assert len(works.told(SettleRefused)) == 1
