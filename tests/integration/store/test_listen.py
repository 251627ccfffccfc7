"""The hub comes back by itself from every kind of cut, and wakes who may have missed something."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import asyncpg
import pytest

from interlock.observe.events.store import ListenLost, ListenReady, PollingFallback
from interlock.runtime.loop import Loop
from interlock.store import listen
from interlock.store.database import Database
from interlock.store.listen import NoticeHub
from interlock.store.notify import notify_in
from tests.harness.databases import with_database
from tests.harness.waiting import eventually

BACK_WITHIN = 5.0


class Running:
    """A hub under its loop, as in production."""

    def __init__(self, database: Database) -> None:
        self.events: list = []
        self.details: list[str] = []
        self.database = database
        self.hub = NoticeHub(database, emit=self.events.append)
        self.hub.subscribe("work", self.details.append)
        self.loop = Loop("notices", self.hub.tick, emit=self.events.append)
        self.hub.wake_with(self.loop.wake)
        self._task = asyncio.create_task(self.loop.run())

    def seen(self, kind: type) -> list:
        return [event for event in self.events if isinstance(event, kind)]

    async def ready(self, times: int = 1, timeout: float = 60.0) -> None:  # noqa: ASYNC109  the timeout names the event
        await eventually(lambda: len(self.seen(ListenReady)) >= times, timeout, f"listening for the {times}. time")

    async def hears(self, detail: str) -> None:
        conn = await asyncpg.connect(self.database.dsn, timeout=60)
        try:
            await notify_in(conn, self.database, [f"work:{detail}"])
        finally:
            await conn.close()
        await eventually(lambda: detail in self.details, what=f"the notice {detail!r}")

    async def close(self) -> None:
        self.loop.stop()
        await self._task
        await self.hub.close()


@pytest.fixture
def running(opened, closing):
    def start(dsn: str, kind: type[Database] = Database) -> Running:
        made = Running(opened(dsn, kind))
        closing.push_async_callback(made.close)
        return made

    return start


async def test_a_notice_wakes_those_who_subscribed_to_its_topic_alone(running, database):
    one = running(database)
    others: list[str] = []
    end = one.hub.subscribe("manifests", others.append)
    await one.ready()
    assert one.details == others == [""]
    await one.hears("7")
    assert others == [""]
    end()
    assert one.hub.listening


async def test_a_terminated_connection_is_replaced_and_everybody_woken(running, database, connect):
    one = running(database)
    await one.ready()
    admin = await connect(database)
    start = time.monotonic()
    ended = await admin.fetch(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'interlock listener' AND datname = current_database()"
    )
    assert len(ended) == 1
    await one.ready(2)
    assert time.monotonic() - start < BACK_WITHIN
    assert len(one.seen(ListenLost)) == 1
    assert one.details == ["", ""]
    await one.hears("again")


async def test_a_crash_of_postgresql_is_survived_within_seconds_of_its_return(running, own_postgres):
    one = running(own_postgres.dsn)
    await one.ready()
    await asyncio.to_thread(own_postgres.stop, "immediate")
    await eventually(lambda: one.seen(ListenLost))
    await eventually(lambda: one.loop.failures >= 3)
    await asyncio.to_thread(own_postgres.start)
    start = time.monotonic()
    await one.ready(2)
    assert time.monotonic() - start < BACK_WITHIN
    assert one.details == ["", ""]
    await one.hears("again")


async def test_a_silent_line_is_noticed_and_survived(running, database, proxy_to, monkeypatch):
    monkeypatch.setattr(listen, "CHECK_INTERVAL", timedelta(seconds=0.2))
    proxy = proxy_to(database)
    one = running(proxy.dsn(database))
    await one.ready()
    proxy.half_open()
    await eventually(lambda: one.seen(ListenLost), 60)
    assert not one.hub.listening
    proxy.heal()
    start = time.monotonic()
    await one.ready(2)
    assert time.monotonic() - start < BACK_WITHIN
    assert one.details == ["", ""]
    await one.hears("again")


async def test_pooled_connections_that_stay_dead_do_not_keep_the_hub_from_coming_back(
    running, database, proxy_to, monkeypatch
):
    """A firewall that forgot the old connections answers new ones only."""
    monkeypatch.setattr(listen, "CHECK_INTERVAL", timedelta(seconds=0.2))
    proxy = proxy_to(database)
    one = running(proxy.dsn(database))
    async with one.database.connection() as conn:
        await conn.fetchval("SELECT 1")
    await one.ready()
    proxy.half_open()
    one.database.dsn = database
    await eventually(lambda: one.seen(ListenLost), 60)
    start = time.monotonic()
    await one.ready(2)
    assert time.monotonic() - start < BACK_WITHIN
    assert one.seen(PollingFallback) == []
    await one.hears("again")
    proxy.cut()


class BehindAPooler(Database):
    """LISTEN lands on a server connection where nobody's notices arrive."""

    async def connect(self, purpose: str):
        if purpose != "listener":
            return await super().connect(purpose)
        dsn, self.dsn = self.dsn, with_database(self.dsn, "postgres")
        try:
            return await super().connect(purpose)
        finally:
            self.dsn = dsn


async def test_where_notices_do_not_arrive_it_says_so_and_polls(opened, database, closing):
    events: list = []
    hub = NoticeHub(opened(database, BehindAPooler), emit=events.append, probe_timeout=timedelta(seconds=0.3))
    closing.push_async_callback(hub.close)
    assert await hub.tick() == listen.PROBE_AGAIN
    assert [type(event) for event in events] == [PollingFallback]
    assert not hub.listening
    assert await hub.tick() == listen.PROBE_AGAIN


async def test_control_the_same_hub_listens_where_notices_arrive(opened, database, closing):
    events: list = []
    hub = NoticeHub(opened(database), emit=events.append, probe_timeout=timedelta(seconds=60))
    closing.push_async_callback(hub.close)
    assert await hub.tick() == listen.CHECK_INTERVAL
    assert [type(event) for event in events] == [ListenReady]
    assert await hub.tick() == listen.CHECK_INTERVAL
    assert len(events) == 1


async def test_a_listen_that_failed_is_not_taken_for_a_pooler(opened, database, closing, monkeypatch):
    """The connection on which LISTEN never happened must not be kept."""
    events: list = []
    hub = NoticeHub(opened(database), emit=events.append)
    closing.push_async_callback(hub.close)

    async def fail(*_: object) -> None:
        raise TimeoutError

    with monkeypatch.context() as broken:
        broken.setattr(asyncpg.Connection, "add_listener", fail)
        with pytest.raises(TimeoutError):
            await hub.tick()
    assert await hub.tick() == listen.CHECK_INTERVAL
    assert [type(event) for event in events] == [ListenReady]
