"""A slot taken away by a person: the audit says who did it, and nothing is done that it does not say."""

from __future__ import annotations

import json

import asyncpg
import pytest

from interlock import Interlock, LockServiceUnavailable
from interlock.errors import InvalidOption, NotPermitted
from interlock.model.act import VIEWER, Actor
from interlock.observe.events import SlotForceReleased


@pytest.fixture(params=["postgres", "redis"])
async def app(request, migrated, each_lock_server_url):
    options = {"lock_backend": "redis", "redis_url": each_lock_server_url} if request.param == "redis" else {}
    app = Interlock(migrated, name="shop", server_name="web-1", **options)
    async with app:
        yield app


@pytest.fixture
async def conn(migrated):
    conn = await asyncpg.connect(migrated)
    yield conn
    await conn.close()


async def audit(conn) -> list[tuple]:
    rows = await conn.fetch("SELECT actor, via, action, target_kind, target, before, note FROM interlock.audit")
    return [tuple(row.values()) for row in rows]


async def test_it_leaves_one_row_that_says_who_took_what_from_whom_and_why(app, conn):
    said = []
    app.events.subscribe(said.append, (SlotForceReleased,))
    lease = await app.locks.atry_hold("report", on_lost="mark")
    freed = await app.locks.aforce_release("report", actor=Actor("ada", via="web"), note="it hangs")
    assert freed.fence == lease.fence
    [(actor, via, action, kind, target, before, note)] = await audit(conn)
    assert (actor, via, action, kind, target, note) == ("ada", "web", "release", "lock", "report", "it hangs")
    kept = json.loads(before)
    assert (kept["owner"], kept["fence"], kept["namespace"], kept["slot"]) == (
        freed.owner,
        str(lease.fence),
        "shop",
        0,
    )
    assert [(event.actor, event.owner) for event in said] == [("ada", freed.owner)]
    assert await app.locks.aholders() == []
    lease.abandon()


async def test_a_slot_that_nobody_holds_leaves_no_row(app, conn):
    assert await app.locks.aforce_release("report", actor="ada") is None
    assert await audit(conn) == []


async def test_whoever_may_not_and_whoever_has_no_name_changes_nothing(app, conn):
    lease = await app.locks.atry_hold("report")
    with pytest.raises(NotPermitted):
        await app.locks.aforce_release("report", actor=Actor("eve", VIEWER))
    with pytest.raises(InvalidOption):
        await app.locks.aforce_release("report", actor="")
    assert len(await app.locks.aholders()) == 1
    assert await audit(conn) == []
    await lease.arelease()


async def test_on_postgresql_a_release_that_cannot_be_written_down_does_not_happen(migrated, conn):
    await conn.execute("ALTER TABLE interlock.audit ADD CONSTRAINT full_up CHECK (actor <> 'ada')")
    async with Interlock(migrated) as app:
        lease = await app.locks.atry_hold("report")
        with pytest.raises(LockServiceUnavailable, match="full_up"):
            await app.locks.aforce_release("report", actor="ada")
        assert len(await app.locks.aholders()) == 1
        await lease.aextend()
        await lease.arelease()
