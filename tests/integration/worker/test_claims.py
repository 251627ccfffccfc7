"""One job, two who want it: one gets it, and the other neither waits nor gets it too."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import asyncpg
import pytest

from interlock.store.background_job import BackgroundJobs
from tests.harness.unguarded import take_patterns_off
from tests.harness.waiting import eventually

SKIP_LOCKED = r"for update[^)]*?skip locked"
WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
SERVER = """
INSERT INTO interlock.server (id, name, roles, trains, tags, slots, host, pid, version, state, lease, lease_until,
    renewed_at, steady_since, started_at)
VALUES ($1, 'x', '{}', '{}', '{}', 1, 'h', 1, '0', 'alive', '1 min', now() + interval '1 min', now(), now(), now())
"""


@pytest.fixture
async def two(migrated, yard, door):
    """Two workers on connections of their own, and what each claims."""
    server = uuid4()
    await yard.conn.execute(SERVER, server)
    conns = [await asyncpg.connect(migrated) for _ in range(2)]

    async def claim(which: int) -> list[int]:
        claims = await BackgroundJobs(door.sql).claim(
            conns[which], trains=["work"], limit=5, server=server, host="h", token=uuid4(), now=None
        )
        return [one.execution_id for one in claims]

    claim.conns = conns
    yield claim
    for conn in conns:
        await conn.close()


async def claimed_by_both(two, yard) -> list[list[int]]:
    """The second comes before the first has committed."""
    async with two.conns[0].transaction():
        first = await two(0)
        second = asyncio.create_task(two(1))

        async def done_or_waits() -> bool:
            return second.done() or bool(await yard.conn.fetchval(WAITS))

        await eventually(done_or_waits, 60, "the second claim")
    return [first, await second]


async def test_of_two_who_claim_at_once_one_gets_the_job(two, yard):
    job = await yard.dispatch()
    assert await claimed_by_both(two, yard) == [[job], []]


async def test_a_second_claim_passes_over_what_is_locked_and_takes_the_next(two, yard):
    first = [await yard.dispatch() for _ in range(5)]
    later = await yard.dispatch()
    assert await claimed_by_both(two, yard) == [first, [later]]


async def test_control_without_lock_and_state_both_get_it(two, yard, monkeypatch):
    take_patterns_off(monkeypatch, {"background_job/claim": [SKIP_LOCKED, r"and e\.state = 'pending'"]})
    job = await yard.dispatch()
    assert await claimed_by_both(two, yard) == [[job], [job]]
