"""What an app does with its declarations when a server of it starts."""

from __future__ import annotations

import asyncpg
import pytest

from interlock import Interlock, every
from interlock.errors import DeclarationAfterStart, OwnedByAnotherApp
from interlock.observe.events.manifest import ManifestsSeeded
from interlock.observe.events.server import ServerRegistered
from tests.harness.profile import SHORT_LEASES
from tests.harness.waiting import eventually

HOURLY = every(hours=1)


def shop(dsn: str, *names: str, name: str = "shop") -> tuple[Interlock, list]:
    app, events = Interlock(dsn, name=name, **SHORT_LEASES), []
    app.events.subscribe(events.append, (ManifestsSeeded, ServerRegistered))

    @app.train(aliases=["hello"])
    async def greet(name: str = "Ada") -> str:
        return name

    for external_id in names:
        app.schedule(external_id, greet.bind(), HOURLY)
    return app, events


async def test_a_start_registers_then_seeds_and_from_then_on_refuses_declarations(migrated):
    app, events = shop(migrated, "a", "b")
    async with app.running():
        assert [type(event) for event in events] == [ServerRegistered, ManifestsSeeded]
        assert events[1].created == 2
        [server] = await app.aservers()
        assert server.profile.trains == ("greet", "hello")
        with pytest.raises(DeclarationAfterStart):
            app.schedule("late", app.trains.get("greet").bind(), HOURLY)
        with pytest.raises(DeclarationAfterStart):
            app.group("late")
        assert await app.aput_schedule("late", app.trains.get("greet").bind(), HOURLY) == "created"


async def test_a_client_declares_and_seeds_nothing(migrated):
    app, events = shop(migrated, "a")
    async with app:
        app.schedule("b", app.trains.get("greet").bind(), HOURLY)
    assert (events, list(app.declarations.manifests)) == ([], ["a", "b"])


async def test_a_start_that_would_take_another_apps_manifest_fails_and_leaves_no_server(migrated):
    theirs, _ = shop(migrated, "m", name="billing")
    async with theirs.running():
        pass
    ours, events = shop(migrated, "m")
    with pytest.raises(OwnedByAnotherApp):
        async with ours.running():
            pass
    assert not any(isinstance(event, ManifestsSeeded) for event in events)
    async with Interlock(migrated) as client:
        assert await client.aservers() == []


async def test_a_server_that_was_marked_lost_seeds_again_under_its_new_id(migrated):
    app, events = shop(migrated, "a")
    conn = await asyncpg.connect(migrated)
    try:
        async with app.running() as keeper:
            first = keeper.server
            await conn.execute("DELETE FROM interlock.manifest")
            await conn.execute("UPDATE interlock.server SET state = 'lost', ended_at = now()")
            await eventually(lambda: keeper.server not in (None, first), 60, "a new registration")
            await eventually(lambda: sum(isinstance(e, ManifestsSeeded) for e in events) == 2, 60, "another seeding")
            assert await conn.fetchval("SELECT count(*) FROM interlock.manifest") == 1
            announced = await conn.fetchval("SELECT server_id FROM interlock.declaration WHERE server_id <> $1", first)
            assert announced == keeper.server
    finally:
        await conn.close()
