"""An enqueue on the user's own connection commits or vanishes with the user's transaction, for every driver."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import asyncpg
import psycopg
import pytest
from psycopg.rows import namedtuple_row

from interlock.errors import KeyNeedsReadCommitted, KeyTaken, ResultBeforeCommit, UnknownWork, UnsupportedConnection
from tests.integration.dispatch.shop import Shop


@pytest.fixture
async def shop(migrated):
    shop = Shop(migrated)
    async with shop.app:
        yield shop


class Asyncpg:
    """A connection that the user keeps, in the terms of its driver."""

    def __init__(self, conn) -> None:
        self.conn = conn

    @classmethod
    @asynccontextmanager
    async def open(cls, dsn):
        conn = await asyncpg.connect(dsn)
        try:
            yield cls(conn)
        finally:
            await conn.close()

    async def begin(self) -> None:
        self._transaction = self.conn.transaction()
        await self._transaction.start()

    async def commit(self) -> None:
        await self._transaction.commit()

    async def rollback(self) -> None:
        await self._transaction.rollback()

    async def enqueue(self, train, *arguments, **options):
        return await train.using(self.conn, **options).aenqueue(*arguments)

    async def enqueue_many(self, app, runs):
        return await app.aenqueue_many(runs, conn=self.conn)


class AsyncpgPool(Asyncpg):
    """With a JSON codec of the user's own, as many web apps set it."""

    @classmethod
    @asynccontextmanager
    async def open(cls, dsn):
        import json

        async def initialise(conn) -> None:
            await conn.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")

        async with asyncpg.create_pool(dsn, min_size=1, max_size=1, init=initialise) as pool, pool.acquire() as conn:
            yield cls(conn)


class PsycopgAsync(Asyncpg):
    @classmethod
    @asynccontextmanager
    async def open(cls, dsn):
        async with await psycopg.AsyncConnection.connect(dsn, row_factory=namedtuple_row) as conn:
            yield cls(conn)

    async def begin(self) -> None:
        await self.conn.execute("SELECT 1")

    async def commit(self) -> None:
        await self.conn.commit()

    async def rollback(self) -> None:
        await self.conn.rollback()


class Psycopg(PsycopgAsync):
    @classmethod
    @asynccontextmanager
    async def open(cls, dsn):
        with psycopg.connect(dsn, row_factory=namedtuple_row) as conn:
            yield cls(conn)

    async def begin(self) -> None:
        self.conn.execute("SELECT 1")

    async def commit(self) -> None:
        self.conn.commit()

    async def rollback(self) -> None:
        self.conn.rollback()

    async def enqueue(self, train, *arguments, **options):
        return await asyncio.to_thread(train.using(self.conn, **options).enqueue, *arguments)

    async def enqueue_many(self, app, runs):
        return await asyncio.to_thread(app.enqueue_many, runs, conn=self.conn)


@pytest.fixture(params=[Asyncpg, AsyncpgPool, PsycopgAsync, Psycopg], ids=lambda kind: kind.__name__)
async def mine(request, migrated):
    async with request.param.open(migrated) as mine:
        yield mine


async def queued(conn) -> list[str]:
    return [row[0] for row in await conn.fetch("SELECT input ->> 'name' FROM interlock.work_queue ORDER BY id")]


async def test_what_is_committed_is_queued(shop, mine, conn):
    await mine.begin()
    handle = await mine.enqueue(shop.greet, "Ada", priority=3)
    assert await queued(conn) == []
    await mine.commit()
    assert await queued(conn) == ["Ada"]
    assert await handle.astatus() == "queued"


async def test_what_is_rolled_back_vanishes(shop, mine, conn):
    await mine.begin()
    handle = await mine.enqueue(shop.greet, "Ada", key="k")
    await mine.rollback()
    assert await queued(conn) == []
    with pytest.raises(UnknownWork):
        await handle.aresult(timeout=1)
    again = await shop.greet.using(key="k").aenqueue("Bob")
    assert again.id != handle.id


async def test_many_runs_share_the_users_transaction(shop, mine, conn):
    await mine.begin()
    handles = await mine.enqueue_many(shop.app, [shop.greet.bind("Ada"), shop.greet.using(key="k").order("Bob")])
    assert (len(handles), await queued(conn)) == (2, [])
    await mine.commit()
    assert await queued(conn) == ["Ada", "Bob"]


async def test_of_many_runs_that_are_refused_for_a_key_none_is_queued_though_the_user_commits(shop, mine, conn):
    await shop.greet.using(key="k").aenqueue("Ada")
    runs = [shop.greet.bind("Bob"), shop.greet.using(key="free").order("Cy"), shop.double.using(key="k").order(1)]
    await mine.begin()
    with pytest.raises(KeyTaken):
        await mine.enqueue_many(shop.app, runs)
    await mine.commit()
    assert await queued(conn) == ["Ada"]
    assert await shop.greet.using(key="free").aenqueue("Dan")


async def test_of_many_runs_with_one_key_for_two_trains_none_is_queued_though_nobody_held_it(shop, mine, conn):
    await mine.begin()
    with pytest.raises(KeyTaken):
        await mine.enqueue_many(shop.app, [shop.greet.using(key="k").order("Bob"), shop.double.using(key="k").order(1)])
    await mine.commit()
    assert await queued(conn) == []


async def test_of_many_runs_that_a_frozen_snapshot_refuses_none_is_queued(shop, migrated, conn):
    mine = await asyncpg.connect(migrated)
    async with mine.transaction(isolation="repeatable_read"):
        with pytest.raises(KeyNeedsReadCommitted):
            await shop.app.aenqueue_many([shop.greet.bind("Bob"), shop.greet.using(key="k").order("Cy")], conn=mine)
    await mine.close()
    assert await queued(conn) == []


async def test_the_result_is_refused_before_the_commit(shop, mine):
    await mine.begin()
    handle = await mine.enqueue(shop.greet, "Ada")
    with pytest.raises(ResultBeforeCommit):
        await handle.aresult(timeout=1)
    with pytest.raises(ResultBeforeCommit):
        await asyncio.to_thread(handle.result, 1)
    await mine.commit()


async def test_one_notice_goes_out_with_the_commit_and_none_before(shop, mine, conn):
    heard: list[str] = []
    await conn.add_listener("interlock_interlock", lambda *notice: heard.append(notice[3]))
    await mine.begin()
    for name in ("Ada", "Bob", "Cy"):
        await mine.enqueue(shop.greet, name)
    await conn.execute("SELECT pg_notify('interlock_interlock', 'mark:before')")
    assert heard == ["mark:before"]
    await mine.commit()
    await conn.execute("SELECT pg_notify('interlock_interlock', 'mark:after')")
    assert heard == ["mark:before", "work:", "mark:after"]


async def test_no_notice_goes_out_for_what_is_rolled_back(shop, mine, conn):
    heard: list[str] = []
    await conn.add_listener("interlock_interlock", lambda *notice: heard.append(notice[3]))
    await mine.begin()
    await mine.enqueue(shop.greet, "Ada")
    await mine.rollback()
    await conn.execute("SELECT pg_notify('interlock_interlock', 'mark:after')")
    assert heard == ["mark:after"]


async def test_a_key_held_in_the_same_transaction_is_found_there(shop, mine):
    await mine.begin()
    first = await mine.enqueue(shop.greet, "Ada", key="k")
    second = await mine.enqueue(shop.greet, "Bob", key="k")
    assert first.id == second.id
    await mine.commit()


async def test_a_pipeline_of_psycopg_is_served_like_any_other_connection(shop, migrated, conn):
    def pipelined() -> list[int]:
        with psycopg.connect(migrated) as mine, mine.pipeline():
            mine.execute("SELECT 1")
            handles = [shop.greet.using(mine).enqueue("Ada"), *shop.app.enqueue_many([shop.double.bind(1)], conn=mine)]
            return [handle.id for handle in [*handles, shop.greet.using(mine, key="k").enqueue("Bob")]]

    async with await psycopg.AsyncConnection.connect(migrated) as mine, mine.pipeline():
        ids = [(await shop.greet.using(mine).aenqueue("Cy")).id]
    ids += await asyncio.to_thread(pipelined)
    assert [row[0] for row in await conn.fetch("SELECT id FROM interlock.work_queue ORDER BY id")] == ids


async def test_a_connection_of_the_other_kind_is_told_its_twin(shop, migrated):
    with psycopg.connect(migrated) as blocking, pytest.raises(UnsupportedConnection, match="blocking twin"):
        await shop.greet.using(blocking).aenqueue("Ada")
    async with Asyncpg.open(migrated) as mine:
        with pytest.raises(UnsupportedConnection, match="async twin"):
            shop.greet.using(mine.conn).enqueue("Ada")
