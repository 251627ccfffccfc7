"""Holders that are killed, stopped or blocked: who gets their slot, when, and what they may still do."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import TYPE_CHECKING

import asyncpg
import pytest

from interlock import Interlock, LeaseLost
from interlock.locks.keeper import LockKeeper
from tests.harness.child import tell
from tests.harness.waiting import eventually

if TYPE_CHECKING:
    from interlock.locks.lease import Lease

TTL = timedelta(seconds=2)
ONE_TRY = 1.0
WRITE = "UPDATE resource SET fence = $1, writer = $2 WHERE fence <= $1"


async def hold_and_write(options: dict[str, str], dsn: str) -> None:
    """The child: works in its slot until it hears that the slot is lost, and then tries one write too many."""
    app, conn = Interlock(**options), await asyncpg.connect(dsn)
    try:
        async with app.locks.hold("resource", ttl=TTL) as lease:
            await conn.execute(WRITE, lease.fence, "child")
            tell("held", fence=lease.fence)
            await asyncio.Event().wait()
    except LeaseLost:
        fenced = await conn.execute(WRITE, lease.fence, "late child")
        unfenced = await conn.execute("UPDATE unguarded SET writer = 'late child'")
        tell("lost", fenced=fenced, unfenced=unfenced)
    await conn.close()
    await app.aclose()


async def hold_and_block(options: dict[str, str], kept: bool) -> None:
    """The child: holds a slot and gives its event loop no turn for three times the ttl."""
    app = Interlock(**options)
    if not kept:
        app.locks._keeper.keep = lambda *_: None
    async with app.locks.hold("resource", ttl=TTL, on_lost="mark") as lease:
        tell("held", fence=lease.fence)
        time.sleep(3 * TTL.total_seconds())  # noqa: ASYNC251  blocking the event loop is what is tested
        tell("blocked", lost=lease.lost)
    await app.aclose()


@pytest.fixture(params=["postgres", "redis"])
def options(request, migrated, valkey_url) -> dict[str, str]:
    if request.param == "postgres":
        return {"dsn": migrated}
    return {"dsn": migrated, "lock_backend": "redis", "redis_url": valkey_url}


@pytest.fixture
async def app(options):
    app = Interlock(**options)
    yield app
    await app.aclose()


@pytest.fixture
async def conn(migrated):
    conn = await asyncpg.connect(migrated)
    await conn.execute("CREATE TABLE resource (fence bigint, writer text); INSERT INTO resource VALUES (0, 'nobody')")
    await conn.execute("CREATE TABLE unguarded (writer text); INSERT INTO unguarded VALUES ('nobody')")
    yield conn
    await conn.close()


async def test_the_slot_of_a_killed_holder_is_free_within_its_ttl(fleet, app, options, migrated, conn):
    child = fleet.start(f"{__name__}:hold_and_write", options, migrated)
    fence = (await child.expect("held"))["fence"]
    assert await app.locks.atry_hold("resource") is None
    child.kill()
    killed = time.monotonic()
    lease = await app.locks.atry_hold("resource", wait=60)
    assert time.monotonic() - killed <= TTL.total_seconds() + ONE_TRY
    assert lease.fence > fence
    await lease.arelease()


async def test_a_holder_that_stood_still_past_its_lease_is_refused_at_the_resource_and_hears_of_its_loss(
    fleet, app, options, migrated, conn
):
    child = fleet.start(f"{__name__}:hold_and_write", options, migrated)
    fence = (await child.expect("held"))["fence"]
    child.stop()
    stopped = time.monotonic()
    async with app.locks.hold("resource", wait=2 * TTL.total_seconds() + 5) as lease:
        assert lease.fence > fence
        assert await conn.execute(WRITE, lease.fence, "heir") == "UPDATE 1"
        await eventually(lambda: time.monotonic() - stopped >= 2 * TTL.total_seconds(), 60, "twice the ttl")
        child.cont()
        told = await child.expect("lost")
        assert told["fenced"] == "UPDATE 0"
        assert told["unfenced"] == "UPDATE 1"  # the control: without a fence the late write does its harm
        assert await conn.fetchval("SELECT writer FROM resource") == "heir"
        lease.ensure()


async def outlived(app, options) -> Lease:
    """A lease that nobody renewed, at the moment at which another holds its slot."""
    lease, other = await app.locks.atry_hold("resource", ttl=TTL, on_lost="mark"), Interlock(**options)
    heir = await other.locks.atry_hold("resource", wait=60)
    assert heir.fence > lease.fence
    await other.aclose()
    return lease


@pytest.fixture
def frozen_heartbeat(monkeypatch) -> None:
    async def stand_still(_, due) -> None:
        for each in due:
            each.due = float("inf")

    monkeypatch.setattr(LockKeeper, "_renew", stand_still)


async def test_when_only_the_heartbeat_stands_still_ensure_raises_before_another_gets_the_slot(
    app, options, frozen_heartbeat
):
    lease = await outlived(app, options)
    with pytest.raises(LeaseLost):
        lease.ensure()


async def test_control_without_a_local_deadline_two_would_work_in_one_slot(app, options, frozen_heartbeat, monkeypatch):
    monkeypatch.setattr("interlock.locks.lease.deadline", lambda asked, _: asked + 3600)
    lease = await outlived(app, options)
    lease.ensure()
    lease.abandon()


async def test_a_holder_that_blocks_its_event_loop_keeps_its_slot(fleet, app, options, conn):
    child = fleet.start(f"{__name__}:hold_and_block", options, True)
    await child.expect("held")
    got = await app.locks.atry_hold("resource", wait=2 * TTL.total_seconds())
    assert got is None
    assert (await child.expect("blocked"))["lost"] is False


async def test_control_without_the_keeper_a_blocked_holder_loses_its_slot(fleet, app, options, conn):
    child = fleet.start(f"{__name__}:hold_and_block", options, False)
    await child.expect("held")
    async with app.locks.hold("resource", wait=2 * TTL.total_seconds()):
        pass
    assert (await child.expect("blocked"))["lost"] is True
