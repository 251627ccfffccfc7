"""Health checks of many servers do not get in each other's way, and say what is wrong when something is."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime, timedelta

import pytest

from interlock import Interlock
from interlock.locks import memory
from interlock.locks.health import HealthState
from tests.integration.locks.conftest import request

SERVERS = 20


async def check(locks_of_servers, rounds: int) -> Counter[HealthState]:
    async def one(locks) -> list[HealthState]:
        return [(await locks.ahealth()).state for _ in range(rounds)]

    answers = await asyncio.gather(*(one(locks) for locks in locks_of_servers))
    return Counter(state for states in answers for state in states)


async def test_checks_of_many_servers_at_once_report_no_trouble(open_backend, open_locks):
    servers = [open_locks(open_backend(), f"server-{number}") for number in range(SERVERS)]
    assert await check(servers, 5) == {HealthState.HEALTHY: 5 * SERVERS}


@pytest.mark.slow
async def test_a_thousand_checks_of_many_servers_at_once_report_no_trouble(open_backend, open_locks):
    servers = [open_locks(open_backend(), f"server-{number}") for number in range(SERVERS)]
    assert await check(servers, 1000) == {HealthState.HEALTHY: 1000 * SERVERS}


async def test_control_checks_on_one_shared_slot_report_false_trouble(backend, open_locks, monkeypatch):
    monkeypatch.setattr("interlock.locks.locks._HEALTH_SLOTS", 1)
    servers = [open_locks(backend, "the same name") for _ in range(SERVERS)]
    for locks in servers:
        await locks.ahealth()
    lease = await servers[0].atry_hold("health:the same name")
    assert (await servers[1].ahealth()).state is HealthState.DEGRADED
    await lease.arelease()


async def test_a_host_whose_clock_is_an_hour_ahead_expires_nothing_early_and_keeps_nothing_longer(
    backend, open_locks, monkeypatch
):
    class Ahead(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(hours=1)

    monkeypatch.setattr("time.time", lambda: 4_000_000_000.0)
    monkeypatch.setattr(memory, "datetime", Ahead)
    here, there = open_locks(backend, "ahead"), open_locks(backend, "other")
    lease = await here.atry_hold("x", ttl=timedelta(seconds=60))
    assert timedelta(seconds=30) < lease.remaining() <= timedelta(seconds=60)
    assert await there.atry_hold("x") is None
    [holder] = await there.aholders()
    assert timedelta(seconds=30) < holder.expires_in <= timedelta(seconds=60)
    await lease.arelease()
    short = request(ttl=0.1)
    await backend.acquire(short)
    got = await there.atry_hold("x", wait=5)
    assert got is not None
    await got.arelease()


async def test_the_health_of_the_fleet_names_a_lock_service_that_does_not_answer(migrated, own_valkey):
    url = f"redis://127.0.0.1:{own_valkey.port}/0"
    async with Interlock(migrated, lock_backend="redis", redis_url=url) as app:
        before = (await app.ahealth()).checks[-1]
        own_valkey.kill()
        after = (await app.ahealth()).checks[-1]
    assert (before.name, before.state, before.detail) == ("locks", "healthy", "the lock service answers")
    assert (after.name, after.state) == ("locks", "degraded")
    assert "no answer from the lock service" in after.detail


async def test_locks_in_the_database_that_answered_already_are_not_taken_for_a_look(migrated):
    async with Interlock(migrated) as app:
        assert "locks" not in {check.name for check in (await app.ahealth()).checks}
