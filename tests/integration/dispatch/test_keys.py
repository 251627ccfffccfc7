"""A key is held by one piece of work at a time, from its first entry to the end of its lineage."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import asyncpg
import psycopg
import pytest

from interlock.dispatch import gateway
from interlock.errors import KeyContended, KeyNeedsReadCommitted, KeyTaken
from interlock.store.database import Database
from interlock.store.line import Line
from interlock.store.settings import StoreSettings
from interlock.store.sql import Catalog, compile_statement
from interlock.store.work_queue import WorkQueue
from tests.harness.waiting import eventually
from tests.integration.dispatch.shop import Shop

ENQUEUE = "work_queue/enqueue"


@pytest.fixture
async def shop(migrated):
    shop = Shop(migrated)
    async with shop.app:
        yield shop


async def held(conn, key: str = "k") -> int:
    return await conn.fetchval("SELECT count(*) FROM interlock.work_queue WHERE key = $1 AND key_held", key)


async def enqueue_at_once(shop, count: int = 20) -> set[int]:
    handles = await asyncio.gather(*(shop.greet.using(key="k").aenqueue(str(number)) for number in range(count)))
    return {handle.id for handle in handles}


async def test_twenty_enqueues_of_one_key_at_once_make_one_entry(shop, conn):
    assert len(await enqueue_at_once(shop)) == 1
    assert await conn.fetchval("SELECT count(*) FROM interlock.work_queue") == 1


async def test_control_without_the_unique_index_every_one_of_them_makes_its_own(shop, conn, monkeypatch):
    await conn.execute("DROP INDEX interlock.work_queue_holds_key")
    text = Catalog("interlock")[ENQUEUE].asyncpg.replace("on conflict (key) where key_held do nothing", "")
    unguarded = compile_statement(ENQUEUE, text, "interlock")

    class Unguarded(Catalog):
        def __getitem__(self, name):
            statement = super().__getitem__(name)
            return unguarded_like(statement) if name == ENQUEUE else statement

    def unguarded_like(statement):
        return replace(statement, asyncpg=unguarded.asyncpg, psycopg=unguarded.psycopg)

    monkeypatch.setattr(gateway, "_queue_of", lambda schema: WorkQueue(Unguarded(schema)))
    assert len(await enqueue_at_once(shop)) == 20


async def test_a_second_enqueue_answers_the_first_while_it_waits_and_while_it_runs(shop, conn):
    first = await shop.greet.using(key="k").aenqueue("Ada")
    assert (await shop.greet.using(key="k").aenqueue("Bob")).id == first.id
    await conn.execute("UPDATE interlock.work_queue SET state = 'dispatched', left_at = now()")
    assert (await shop.greet.using(key="k").aenqueue("Cy")).id == first.id


async def test_a_second_enqueue_answers_the_lineage_when_a_retry_holds_the_key(shop, conn):
    first = await shop.greet.using(key="k").aenqueue("Ada")
    await conn.execute("UPDATE interlock.work_queue SET state = 'dispatched', left_at = now(), key_held = false")
    await conn.execute(
        "INSERT INTO interlock.work_queue (kind, train, input, attempt, max_attempts, max_crashes, retry_delay,"
        " max_retry_delay, retry_backoff, group_id, group_priority, priority, ready, key, key_held, first_entry_id)"
        " SELECT kind, train, input, 2, 3, 3, '1 s', '1 s', 1, group_id, 0, 0, true, key, true, id"
        " FROM interlock.work_queue"
    )
    assert (await shop.greet.using(key="k").aenqueue("Bob")).id == first.id


async def test_a_key_that_was_let_go_can_be_taken_again(shop, conn):
    first = await shop.greet.using(key="k").aenqueue("Ada")
    await conn.execute("UPDATE interlock.work_queue SET key_held = false")
    second = await shop.greet.using(key="k").aenqueue("Bob")
    assert second.id != first.id
    assert await held(conn) == 1


async def test_an_uncommitted_holder_is_waited_for_and_answered(shop, conn, migrated):
    other = await asyncpg.connect(migrated)
    try:
        transaction = other.transaction()
        await transaction.start()
        first = await shop.greet.using(other, key="k").aenqueue("Ada")
        waiting = asyncio.create_task(shop.greet.using(key="k").aenqueue("Bob"))
        await until_somebody_waits(conn)
        await transaction.commit()
        assert (await waiting).id == first.id
    finally:
        await other.close()


async def test_a_holder_that_rolls_back_leaves_the_key_to_the_one_who_waited(shop, conn, migrated):
    other = await asyncpg.connect(migrated)
    try:
        transaction = other.transaction()
        await transaction.start()
        first = await shop.greet.using(other, key="k").aenqueue("Ada")
        waiting = asyncio.create_task(shop.greet.using(key="k").aenqueue("Bob"))
        await until_somebody_waits(conn)
        await transaction.rollback()
        assert (await waiting).id != first.id
        assert await held(conn) == 1
    finally:
        await other.close()


async def until_somebody_waits(conn) -> None:
    question = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    await eventually(lambda: conn.fetchval(question), 60, "an enqueue that waits for the other transaction")


@pytest.mark.parametrize("level", ["repeatable_read", "serializable"])
async def test_a_caller_with_a_frozen_snapshot_is_refused(shop, migrated, level):
    other = await asyncpg.connect(migrated)
    try:
        async with other.transaction(isolation=level):
            assert await shop.greet.using(other).aenqueue("no key, no question")
            with pytest.raises(KeyNeedsReadCommitted) as refused:
                await shop.greet.using(other, key="k").aenqueue("Ada")
        assert (refused.value.key, refused.value.isolation) == ("k", level.replace("_", " "))
    finally:
        await other.close()


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
async def test_a_database_whose_default_is_a_frozen_snapshot_does_not_stop_our_own_connections(migrated, conn, level):
    name = await conn.fetchval("SELECT current_database()")
    await conn.execute(f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = '{level}'")
    shop = Shop(migrated)
    async with shop.app:
        first, second = [await shop.greet.using(key="k").aenqueue("Ada") for _ in range(2)]
        assert first.id == second.id
        assert len(await shop.app.aenqueue_many([shop.greet.using(key=key).order("Bob") for key in "abc"])) == 3
    line = Line(Database(migrated, StoreSettings()), "test", by_key=True)
    async with line.connection() as own:
        assert await own.fetchval("SHOW transaction_isolation") == "read committed"
    await line.close()


def test_a_blocking_caller_with_a_frozen_snapshot_is_refused(migrated):
    shop = Shop(migrated)
    with psycopg.connect(migrated) as conn:
        conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with pytest.raises(KeyNeedsReadCommitted):
            shop.greet.using(conn, key="k").enqueue("Ada")


async def test_a_key_of_another_train_is_refused_and_one_of_an_older_name_is_not(shop, conn):
    await shop.greet.using(key="k").aenqueue("Ada")
    with pytest.raises(KeyTaken) as refused:
        await shop.app.aenqueue_many([shop.greet.bind("not written"), shop.double.using(key="k").order(1)])
    assert (refused.value.train, refused.value.holder) == ("double", "greet")
    assert await conn.fetchval("SELECT count(*) FROM interlock.work_queue") == 1
    await conn.execute("UPDATE interlock.work_queue SET train = 'double-before'")
    assert await shop.double.using(key="k").aenqueue(1)


async def test_a_key_that_changes_hands_at_every_look_ends_in_an_error_not_in_a_loop(shop, monkeypatch):
    """The conflict is there, the holder is never seen: what a caller would meet whose snapshot is frozen."""
    await shop.greet.using(key="k").aenqueue("Ada")
    holders = Catalog("interlock")["work_queue/holders"]
    blind = replace(holders, asyncpg=holders.asyncpg.replace("and w.key_held", "and false"))

    class Blind(Catalog):
        def __getitem__(self, name):
            return blind if name == holders.name else super().__getitem__(name)

    monkeypatch.setattr(gateway, "_queue_of", lambda schema: WorkQueue(Blind(schema)))
    with pytest.raises(KeyContended):
        await shop.greet.using(key="k").aenqueue("Bob")


async def test_two_batches_that_take_the_same_keys_in_another_order_do_not_deadlock(shop):
    keys = [f"k{number}" for number in range(30)]

    async def batch(order):
        return await shop.app.aenqueue_many([shop.greet.using(key=key).order(key) for key in order])

    for _ in range(10):
        forth, back = await asyncio.gather(batch(keys), batch(keys[::-1]))
        assert [handle.id for handle in forth] == [handle.id for handle in back[::-1]]


async def test_many_runs_that_break_a_deadlock_with_a_callers_transaction_are_tried_again(shop, conn, migrated):
    mine = await asyncpg.connect(migrated)
    try:
        async with mine.transaction():
            first = await shop.greet.using(mine, key="b").aenqueue("Ada")
            many = asyncio.create_task(shop.app.aenqueue_many([shop.greet.using(key=key).order(key) for key in "ab"]))
            await until_somebody_waits(conn)  # for b, with a in hand; who waited first is who finds the deadlock
            second = await shop.greet.using(mine, key="a").aenqueue("Bob")
        assert [handle.id for handle in await many] == [second.id, first.id]
    finally:
        await mine.close()
