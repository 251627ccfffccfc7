"""A lock service that stands still, forgets or restarts: what can be saved is saved, the rest is lost in time."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from interlock import Interlock, LeaseLost, LockServiceUnavailable
from interlock.locks.keeper import LockKeeper
from interlock.observe.events import SlotLost, SlotRenewalFailed
from tests.harness import databases
from tests.harness.schema import apply_schema
from tests.harness.valkey import ask
from tests.harness.waiting import eventually

TTL = timedelta(seconds=2)
SAVED = timedelta(seconds=6)  # for leases that must live: a busy machine may keep their keeper waiting


class Watched:
    """An app and what it said."""

    def __init__(self, app: Interlock) -> None:
        self.app, self.locks, self.events = app, app.locks, []
        app.events.subscribe(self.events.append)

    def said(self, kind) -> int:
        return sum(isinstance(event, kind) for event in self.events)

    async def failed_renewal(self) -> None:
        before = self.said(SlotRenewalFailed)
        await eventually(lambda: self.said(SlotRenewalFailed) > before, 60, "a renewal that fails")

    async def renewed(self, lease) -> None:
        """A full lease was granted after this call began."""
        await eventually(lambda: lease.remaining() > lease.ttl * 0.9, what="a renewal")

    async def renewed_once(self, lease) -> None:
        """The keeper has spoken with the service."""
        answered = lease.answered
        await eventually(lambda: lease.answered > answered, 60, "the first renewal")

    async def lost(self) -> int:
        """Hold until the lease is lost; answers the fence."""
        lease = await self.locks.atry_hold("x", ttl=TTL)
        with pytest.raises(LeaseLost):
            await _stay(lease)
        return lease.fence


async def _stay(lease) -> None:
    async with lease:
        await asyncio.Event().wait()


async def next_fence(locks) -> int:
    """The fence of the next holder, once the service answers again."""

    async def taken():
        try:
            return await locks.atry_hold("x", ttl=TTL)
        except LockServiceUnavailable:
            return None

    lease = await eventually(taken, 60, "a slot")
    await lease.arelease()
    return lease.fence


@pytest.fixture
async def redis(own_valkey, migrated):
    app = Interlock(migrated, lock_backend="redis", redis_url=f"redis://127.0.0.1:{own_valkey.port}/0")
    yield Watched(app)
    await app.aclose()


@pytest.fixture
async def postgres(own_postgres):
    databases.run_blocking(apply_schema(own_postgres.dsn))
    app = Interlock(own_postgres.dsn)
    yield Watched(app)
    await app.aclose()


@pytest.fixture
def unkept(monkeypatch) -> None:
    """The guard switched off: nobody renews."""
    monkeypatch.setattr(LockKeeper, "keep", lambda *_: None)


@pytest.fixture
def impatient(monkeypatch) -> None:
    """The guard switched off: a renewal is tried once."""
    failed = LockKeeper._failed

    async def give_up(keeper, due, error) -> None:
        await failed(keeper, due, error)
        for each in due:
            keeper._lose(each, "gave up")

    monkeypatch.setattr(LockKeeper, "_failed", give_up)


@pytest.fixture
def credulous(monkeypatch) -> None:
    """The guard switched off: a lease is believed in until the lock service says otherwise."""
    monkeypatch.setattr("interlock.locks.lease.deadline", lambda asked, _: asked + 3600)
    monkeypatch.setattr(LockKeeper, "keep", lambda *_: None)


@pytest.fixture
def unconnected(monkeypatch) -> None:
    """The guard switched off: a line that broke is used on."""

    async def hold_the_line(_) -> None:
        """As one does who does not know that the other end is gone."""

    monkeypatch.setattr(LockKeeper, "_hang_up", hold_the_line)


def stand_still(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)


def go_on(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)


async def test_a_pause_of_redis_shorter_than_the_lease_loses_nothing(redis, own_valkey):
    async with redis.locks.hold("x", ttl=SAVED) as lease:
        ask(own_valkey.port, f"CLIENT PAUSE {round(SAVED.total_seconds() * 500)} ALL")
        await eventually(lambda: lease.remaining() < SAVED * 0.6, what="a renewal that is late")
        await redis.renewed(lease)
    assert redis.said(SlotLost) == 0


async def test_control_without_renewals_a_short_pause_of_redis_loses_the_lease(redis, own_valkey, unkept):
    lease = await redis.locks.atry_hold("x", ttl=TTL, on_lost="mark")
    ask(own_valkey.port, f"CLIENT PAUSE {round(TTL.total_seconds() * 500)} ALL")
    await eventually(lambda: lease.lost, 60, "the loss")
    await lease.arelease()


async def test_a_pause_of_redis_longer_than_the_lease_loses_it(redis, own_valkey):
    holding = asyncio.create_task(redis.lost())
    await eventually(lambda: redis.events, 60, "the hold")
    ask(own_valkey.port, f"CLIENT PAUSE {round(TTL.total_seconds() * 2000)} ALL")
    fence = await holding
    assert redis.said(SlotLost) == 1
    assert await next_fence(redis.locks) > fence


async def test_control_without_a_deadline_of_its_own_a_holder_believes_in_its_lease_through_a_long_pause(
    redis, own_valkey, credulous
):
    async with redis.locks.hold("x", ttl=TTL, on_lost="mark") as lease:
        ask(own_valkey.port, f"CLIENT PAUSE {round(TTL.total_seconds() * 2000)} ALL")
        await eventually(lambda: lease.held_for > TTL * 1.2, 60, "the end of the lease")
        lease.ensure()


async def test_a_redis_stopped_for_less_than_the_lease_loses_nothing(redis, own_valkey):
    async with redis.locks.hold("x", ttl=SAVED) as lease:
        stand_still(own_valkey.pid)
        try:
            await redis.failed_renewal()
        finally:
            go_on(own_valkey.pid)
        await redis.renewed(lease)
    assert redis.said(SlotLost) == 0


async def test_control_a_keeper_that_gives_up_at_the_first_failure_loses_a_lease_it_could_have_saved(
    redis, own_valkey, impatient
):
    lease = await redis.locks.atry_hold("x", ttl=TTL, on_lost="mark")
    stand_still(own_valkey.pid)
    try:
        await redis.failed_renewal()
    finally:
        go_on(own_valkey.pid)
    await eventually(lambda: redis.said(SlotLost), 60, "the loss")
    assert lease.lost
    await lease.arelease()


async def test_control_without_a_deadline_of_its_own_a_holder_believes_in_the_lease_of_a_stopped_redis(
    redis, own_valkey, credulous
):
    lease = await redis.locks.atry_hold("x", ttl=TTL, on_lost="mark")
    stand_still(own_valkey.pid)
    try:
        await eventually(lambda: lease.held_for > TTL * 1.2, 60, "the end of the lease")
        lease.ensure()
    finally:
        go_on(own_valkey.pid)
        lease.abandon()


async def test_a_redis_stopped_for_longer_than_the_lease_loses_it(redis, own_valkey):
    holding = asyncio.create_task(redis.lost())
    await eventually(lambda: redis.events, 60, "the hold")
    stand_still(own_valkey.pid)
    try:
        fence = await holding
    finally:
        go_on(own_valkey.pid)
    assert await next_fence(redis.locks) > fence


async def test_flushall_loses_the_lease_at_its_next_renewal_and_fences_go_on_growing(redis, own_valkey):
    holding = asyncio.create_task(redis.lost())
    await eventually(lambda: redis.events, 60, "the hold")
    ask(own_valkey.port, "FLUSHALL")
    fence = await holding
    assert "does not know it" in next(event for event in redis.events if isinstance(event, SlotLost)).reason
    assert await next_fence(redis.locks) > fence


async def test_a_redis_that_restarts_and_has_forgotten_everything_loses_the_lease_and_fences_go_on_growing(
    redis, own_valkey
):
    holding = asyncio.create_task(redis.lost())
    await eventually(lambda: redis.events, 60, "the hold")
    own_valkey.kill()
    own_valkey.start()
    fence = await holding
    assert await next_fence(redis.locks) > fence


async def test_control_a_fence_that_only_counts_starts_anew_after_flushall(redis, own_valkey, monkeypatch):
    text = (Path(__file__).parents[2] / "src/interlock/locks/scripts/acquire.lua").read_text()
    counting = text.replace("tonumber(time[1]) * 1000000 + tonumber(time[2])", "0")
    assert counting != text
    original = __import__("interlock.locks.redis", fromlist=["_script"])._script
    monkeypatch.setattr(
        "interlock.locks.redis._script", lambda name: (counting, "0" * 40) if name == "acquire" else original(name)
    )
    lease = await redis.locks.atry_hold("x", on_lost="mark")
    ask(own_valkey.port, "FLUSHALL")
    assert await next_fence(redis.locks) <= lease.fence
    lease.abandon()


async def test_a_restart_of_postgresql_loses_no_lease(postgres, own_postgres):
    long = timedelta(seconds=60)
    async with postgres.locks.hold("x", ttl=long) as lease:
        await asyncio.to_thread(own_postgres.restart)
        await lease.aextend(SAVED)
        await postgres.renewed(lease)
    assert postgres.said(SlotLost) == 0


async def test_control_a_keeper_that_does_not_connect_anew_loses_its_lease_in_a_restart_of_postgresql(
    postgres, own_postgres, unconnected
):
    lease = await postgres.locks.atry_hold("x", ttl=TTL, on_lost="mark")
    await postgres.renewed_once(lease)
    await asyncio.to_thread(own_postgres.restart)
    await eventually(lambda: postgres.said(SlotLost), 60, "the loss")
    lease.abandon()


async def test_control_slots_in_a_table_that_is_not_durable_are_given_away_after_a_power_cut(postgres, own_postgres):
    conn = await asyncpg.connect(own_postgres.dsn)
    await conn.execute("ALTER TABLE interlock.lock_slot SET UNLOGGED")
    await conn.close()
    lease = await postgres.locks.atry_hold("x", ttl=timedelta(seconds=60), on_lost="mark")
    await asyncio.to_thread(own_postgres.restart, "immediate")
    other = Interlock(own_postgres.dsn)
    assert await other.locks.atry_hold("x") is not None
    assert not lease.lost
    await other.aclose()
    lease.abandon()


async def test_a_power_cut_of_postgresql_does_not_forget_who_holds(postgres, own_postgres):
    lease = await postgres.locks.atry_hold("x", ttl=timedelta(seconds=60))
    await asyncio.to_thread(own_postgres.restart, "immediate")
    other = Interlock(own_postgres.dsn)
    assert await other.locks.atry_hold("x") is None
    await other.aclose()
    await lease.aextend()
    await lease.arelease()


async def test_a_postgresql_that_is_away_for_longer_than_the_lease_loses_it(postgres, own_postgres):
    holding = asyncio.create_task(postgres.lost())
    await eventually(lambda: postgres.events, 60, "the hold")
    await asyncio.to_thread(own_postgres.stop)
    fence = await holding
    await asyncio.to_thread(own_postgres.start)
    assert postgres.said(SlotRenewalFailed) > 1
    assert await next_fence(postgres.locks) > fence


async def test_control_without_a_deadline_of_its_own_a_holder_believes_in_the_lease_of_a_postgresql_that_is_away(
    postgres, own_postgres, credulous
):
    lease = await postgres.locks.atry_hold("x", ttl=TTL, on_lost="mark")
    await asyncio.to_thread(own_postgres.stop)
    try:
        await eventually(lambda: lease.held_for > TTL * 1.2, 60, "the end of the lease")
        lease.ensure()
    finally:
        await asyncio.to_thread(own_postgres.start)
        lease.abandon()


async def test_a_line_that_went_dead_without_a_word_is_noticed_and_replaced(postgres, own_postgres, proxy_to):
    proxy = proxy_to(own_postgres.dsn)
    watched = Watched(Interlock(proxy.dsn(own_postgres.dsn)))
    async with watched.locks.hold("x", ttl=SAVED) as lease:
        await watched.renewed(lease)
        proxy.half_open()
        await watched.failed_renewal()
        proxy.cut()
        proxy.heal()
        await watched.renewed(lease)
    assert watched.said(SlotLost) == 0
    await watched.app.aclose()
