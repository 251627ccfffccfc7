"""An app as a client and as a server: what it opens, what it refuses, and that it leaves nothing open."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import textwrap
import time
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from interlock import Interlock
from interlock.embedded.watchdog import live_postmaster
from interlock.errors import DatabaseUnavailable, NotOpen, SchemaAbsent, SchemaTooOld
from interlock.observe.events import EmbeddedStarted, SchemaApplied
from interlock.store.migrate import code_version
from tests.harness import run_folder
from tests.harness.databases import execute, fetch_value, with_database
from tests.harness.ports import free_port
from tests.harness.profile import SHORT_LEASES
from tests.harness.waiting import NeverHappenedError, eventually, eventually_blocking

CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
HAS_SCHEMA = "SELECT to_regnamespace('interlock') IS NOT NULL"


def app_on(dsn: str | None, **options) -> tuple[Interlock, list]:
    app, events = Interlock(dsn, **SHORT_LEASES, **options), []
    app.events.subscribe(events.append)
    return app, events


def kinds(events: list, *wanted: type) -> list:
    return [event for event in events if isinstance(event, wanted)]


@asynccontextmanager
async def entered(app: Interlock):
    """Whether it is meant to serve does not matter here: it must not come so far."""
    async with app.running():
        yield


async def nobody_is_connected(dsn: str) -> None:
    await eventually(lambda: fetch_value(dsn, CONNECTIONS) == 0, 60, "the end of every connection")


async def test_a_client_reads_runs_nothing_and_closes_what_it_opened(migrated):
    app, events = app_on(migrated)
    async with app:
        assert await app.aservers(all=True) == []
    assert events == []
    await nobody_is_connected(migrated)


async def test_a_close_that_is_cut_short_closes_the_rest_all_the_same(migrated, monkeypatch):
    app, closing = app_on(migrated)[0], asyncio.Event()

    async def never_closed() -> None:
        closing.set()
        await asyncio.Event().wait()

    await app.aopen()
    monkeypatch.setattr(app.locks, "aclose", never_closed)
    leaving = asyncio.create_task(app.aclose())
    await closing.wait()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    await nobody_is_connected(migrated)


def test_a_blocking_client_does_the_same(migrated):
    app, _ = app_on(migrated)
    with app:
        assert app.servers(all=True) == []
    eventually_blocking(lambda: fetch_value(migrated, CONNECTIONS) == 0, 60, "the end of every connection")


def test_a_blocking_server_runs_work_until_its_block_ends(migrated):
    app, _ = app_on(migrated)

    @app.train
    def double(number: int) -> int:
        return 2 * number

    with app.running():
        assert double.enqueue(21).result(timeout=60) == 42
    assert fetch_value(migrated, "SELECT array_agg(state) FROM interlock.server") == ["gone"]
    eventually_blocking(lambda: fetch_value(migrated, CONNECTIONS) == 0, 60, "the end of every connection")


def test_a_blocking_server_ends_with_the_error_of_its_block(migrated):
    app, _ = app_on(migrated)
    with pytest.raises(ZeroDivisionError), app.running():
        raise ZeroDivisionError
    assert fetch_value(migrated, "SELECT array_agg(state) FROM interlock.server") == ["gone"]


async def test_an_app_that_was_closed_can_be_opened_again(migrated):
    app, _ = app_on(migrated)
    for _ in range(2):
        async with app:
            assert await app.aservers() == []
    await nobody_is_connected(migrated)


async def test_whoever_leaves_an_app_closes_nothing_for_those_who_still_have_it_open(migrated):
    app, _ = app_on(migrated)
    async with app.running(), app.locks.hold("report", ttl=timedelta(seconds=1)) as lease:
        database = await app.adatabase()
        async with app:
            pass
        await asyncio.to_thread(leave_at_once, app)
        answered = lease.answered
        assert await app.adatabase() is database
        await eventually(lambda: lease.answered > answered, 20, "a renewal")
    await nobody_is_connected(migrated)


def leave_at_once(app: Interlock) -> None:
    with app:
        pass


async def test_a_client_that_could_not_open_is_none_of_those_who_have_it_open(database):
    app, _ = app_on(database)
    with pytest.raises(SchemaAbsent):
        await app.aopen()
    async with app.running():
        pass
    await nobody_is_connected(database)


async def test_an_app_is_open_for_whoever_comes_while_it_is_being_closed(migrated, monkeypatch):
    app, closing, go_on = app_on(migrated)[0], asyncio.Event(), asyncio.Event()

    async def slowly_closed() -> None:
        closing.set()
        await go_on.wait()

    await app.aopen()
    before = await app.adatabase()
    monkeypatch.setattr(before, "close", slowly_closed)
    leaving = asyncio.create_task(app.aclose())
    await closing.wait()
    async with app:
        assert await app.adatabase() is not before
        go_on.set()
        await leaving
        assert await app.aservers() == []


async def test_a_client_never_makes_the_schema(database):
    app, _ = app_on(database)
    with pytest.raises(SchemaAbsent, match="interlock schema apply"):
        await app.aopen()
    assert not fetch_value(database, HAS_SCHEMA)
    await nobody_is_connected(database)


async def test_a_server_makes_the_schema_is_in_the_registry_while_it_runs_and_leaves_it(database):
    app, events = app_on(database, server_name="one", name="shop")
    async with app.running(["worker"]) as keeper:
        me = keeper.server
        [row] = await app.aservers()
        assert (row.id, row.profile.name, row.profile.app, row.state) == (me, "one", "shop", "alive")
        assert row.profile.roles == ("worker",)
    assert [(event.from_version, event.to_version) for event in kinds(events, SchemaApplied)] == [(0, code_version())]
    async with app:
        assert await app.aservers() == []
        assert [(row.id, row.state) for row in await app.aservers(all=True)] == [(me, "gone")]
    await nobody_is_connected(database)


async def test_a_block_that_raises_stops_the_server_all_the_same(migrated):
    app, _ = app_on(migrated)

    async def fail() -> None:
        async with app.running():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert fetch_value(migrated, "SELECT array_agg(state) FROM interlock.server") == ["gone"]
    await nobody_is_connected(migrated)


@pytest.mark.parametrize("open_it", [Interlock.__aenter__, lambda app: entered(app).__aenter__()])
async def test_where_the_schema_must_not_be_applied_its_absence_is_an_error(database, open_it):
    app, _ = app_on(database, schema_apply="never")
    with pytest.raises(SchemaAbsent):
        await open_it(app)
    assert not fetch_value(database, HAS_SCHEMA)
    await nobody_is_connected(database)


async def test_where_the_schema_must_not_be_applied_an_old_one_is_left_alone(migrated):
    execute(migrated, "DELETE FROM interlock.schema_version WHERE version > 1")
    app, _ = app_on(migrated, schema_apply="never")
    with pytest.raises(SchemaTooOld):
        await entered(app).__aenter__()
    assert fetch_value(migrated, "SELECT count(*) FROM interlock.server") == 0


async def test_where_the_schema_must_not_be_applied_a_current_one_is_served(migrated):
    app, events = app_on(migrated, schema_apply="never")
    async with app.running() as keeper:
        assert keeper.server is not None
    assert kinds(events, SchemaApplied) == []


@pytest.mark.parametrize("open_it", [Interlock.__aenter__, lambda app: entered(app).__aenter__()])
@pytest.mark.parametrize("wrong", ["port", "database", "password", "address"])
async def test_a_wrong_address_is_a_typed_error_without_the_password(migrated, open_it, wrong):
    app, _ = app_on(misdirected(migrated, wrong))
    began = time.monotonic()
    with pytest.raises(DatabaseUnavailable) as refused:
        await open_it(app)
    assert time.monotonic() - began < 10
    assert (urlsplit(migrated).password or "") not in str(refused.value)
    assert "hush" not in str(refused.value)
    await nobody_is_connected(migrated)


def misdirected(dsn: str, wrong: str) -> str:
    before, _, place = dsn.partition("@")
    user = before.removeprefix("postgresql://").partition(":")[0]
    return {
        "port": f"postgresql://{user}:hush-hush@127.0.0.1:{free_port()}/app",
        "database": with_database(dsn, "no_such_database"),
        "password": f"postgresql://{user}:hush-hush@{place}",
        "address": f"postgresql://{user}:hush/hush@{place}",
    }[wrong]


@pytest.fixture
def embedded_folder(monkeypatch):
    """The folder of a private server, for an app that names no database."""
    folder = Path(tempfile.mkdtemp(prefix="app-", dir=run_folder.path())).resolve()
    folder.chmod(0o755)
    monkeypatch.chdir(folder)
    for name in ("INTERLOCK_DSN", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("INTERLOCK_EMBEDDED_FOLDER", str(folder / "s"))
    yield folder / "s"
    ended(folder / "s")


def ended(folder: Path) -> None:
    eventually_blocking(lambda: live_postmaster(str(folder / "data")) is None, 60, "the end of the private server")


async def test_without_an_address_a_private_server_is_started_kept_and_stopped(embedded_folder):
    app, events = app_on(None)
    async with app.running() as keeper:
        me = keeper.server
        assert live_postmaster(str(embedded_folder / "data")) is not None
    [started] = kinds(events, EmbeddedStarted)
    assert started.folder == str(embedded_folder)
    ended(embedded_folder)
    async with Interlock() as again:
        assert [(row.id, row.state) for row in await again.aservers(all=True)] == [(me, "gone")]


async def test_the_address_of_a_private_server_can_be_asked_for_while_the_app_is_open(embedded_folder):
    app, events = app_on(None)
    with pytest.raises(NotOpen, match="inside `async with app:`"):
        app.dsn  # noqa: B018  it is the asking that is refused
    async with app:
        dsn = app.dsn
        assert fetch_value(dsn, HAS_SCHEMA)
    assert (urlsplit(dsn).password or "") not in repr(events)
    with pytest.raises(NotOpen):
        app.dsn  # noqa: B018  see above


async def test_a_private_server_goes_on_for_a_server_when_a_client_of_the_same_app_leaves(embedded_folder):
    app, events = app_on(None)
    async with app.running():
        async with app:
            dsn = app.dsn
        assert app.dsn == dsn
        with pytest.raises(NeverHappenedError):
            await eventually(lambda: live_postmaster(str(embedded_folder / "data")) is None, 3)
        assert len(await app.aservers()) == 1
    assert len(kinds(events, EmbeddedStarted)) == 1


def test_a_named_database_is_known_without_opening_it(migrated):
    assert Interlock(migrated).dsn == migrated


FORKS = """
    import asyncio, os, sys
    from interlock import Interlock
    from tests.harness.child import tell

    app = Interlock()

    async def backend():
        database = await app.adatabase()
        async with database.connection() as conn:
            return await conn.fetchval("select pg_backend_pid()")

    loop = asyncio.new_event_loop()
    loop.run_until_complete(app.aopen())
    before = loop.run_until_complete(backend())
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        asyncio.set_event_loop(None)
        other = asyncio.new_event_loop()
        first = other.run_until_complete(backend())
        tell("child", backend=first)
        os.close(writer)
        os.read(reader, 1)  # the parent has left by now
        tell("alone", backend=other.run_until_complete(backend()))
        other.run_until_complete(app.aclose())
        os._exit(0)
    os.close(reader)
    after = loop.run_until_complete(backend())
    loop.run_until_complete(app.aclose())
    tell("parent", before=before, after=after)
    sys.stdin.readline()
    os.close(writer)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


async def test_a_forked_child_becomes_a_user_of_the_private_server_itself(embedded_folder, fleet):
    process = fleet.command(sys.executable, "-c", textwrap.dedent(FORKS), listens=True)
    child, parent = await process.expect("child", 60), await process.expect("parent", 60)
    assert child["backend"] != parent["before"] == parent["after"]
    with pytest.raises(NeverHappenedError):
        await eventually(lambda: live_postmaster(str(embedded_folder / "data")) is None, 3)
    process.tell({"go": True})
    assert (await process.expect("alone"))["backend"] == child["backend"]
    assert await process.wait() == 0
