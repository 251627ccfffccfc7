"""What an enqueue writes, and what it refuses."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg
import psycopg
import pytest

from interlock.dispatch import gateway
from interlock.errors import (
    DatabaseUnavailable,
    PayloadTooLarge,
    SchemaAbsent,
    SyncCallInEventLoop,
    UnknownGroup,
    UnsupportedConnection,
)
from interlock.observe.context import ExecutionContext, bound
from interlock.observe.events.work import WorkEnqueued
from interlock.settings import override
from interlock.store.database import Database
from tests.harness.waiting import eventually
from tests.integration.dispatch.shop import Shop


@pytest.fixture
async def shop(migrated):
    shop = Shop(migrated)
    async with shop.app:
        yield shop


async def entry(conn, handle):
    return await conn.fetchrow("SELECT * FROM interlock.work_queue WHERE id = $1", handle.id)


async def test_an_entry_has_the_policy_of_its_train_and_else_of_the_settings(shop, conn):
    row = await entry(conn, await shop.greet.aenqueue("Ada", times=2))
    assert (row["state"], row["kind"], row["train"], row["attempt"]) == ("queued", "adhoc", "greet", 1)
    assert row["input"] == '{"name": "Ada", "times": 2}'
    assert (row["max_attempts"], row["retry_delay"]) == (3, timedelta(seconds=0.01))
    assert (row["priority"], row["group_priority"], row["ready"], row["key_held"]) == (0, 0, True, False)
    row = await entry(conn, await shop.double.aenqueue(4))
    assert (row["max_attempts"], row["timeout"], row["priority"]) == (2, timedelta(seconds=33), 7)


async def test_the_caller_says_priority_delay_and_group(shop, conn):
    using = shop.greet.using(priority=40, delay=timedelta(hours=1), group="etl")
    row = await entry(conn, await using.aenqueue("Ada"))
    group = await conn.fetchrow("SELECT * FROM interlock.manifest_group WHERE name = 'etl'")
    assert (row["priority"], row["group_id"], row["ready"]) == (40, group["id"], False)
    assert row["scheduled_at"] - row["created_at"] == timedelta(hours=1)


async def test_without_a_priority_of_its_own_an_entry_has_that_of_its_group(shop, conn):
    await conn.execute("INSERT INTO interlock.manifest_group (name, priority) VALUES ('vip', 21)")
    row = await entry(conn, await shop.greet.using(group="vip").aenqueue("Ada"))
    assert (row["priority"], row["group_priority"]) == (21, 21)
    row = await entry(conn, await shop.double.using(group="vip").aenqueue(1))
    assert row["priority"] == 7


async def test_a_declared_group_that_no_server_wrote_yet_is_written(shop, conn):
    assert await conn.fetchval("SELECT count(*) FROM interlock.manifest_group") == 1
    handles = await asyncio.gather(*(shop.double.aenqueue(number) for number in range(10)))
    assert len({handle.id for handle in handles}) == 10
    assert await conn.fetchval("SELECT count(*) FROM interlock.manifest_group") == 2


async def test_an_undeclared_group_is_refused_and_nothing_is_written(shop, conn):
    orders = [shop.greet.using(group="nowhere").order("Ada"), shop.greet.bind("Bob")]
    with pytest.raises(UnknownGroup) as refused:
        await shop.app.aenqueue_many(orders)
    assert (refused.value.name, list(refused.value.known)) == ("nowhere", ["default"])
    assert await conn.fetchval("SELECT count(*) FROM interlock.work_queue") == 0


async def test_many_runs_of_several_trains_come_back_in_their_order(shop, conn):
    runs = [
        shop.greet.bind("Ada"),
        shop.double.bind(2),
        shop.greet.using(key="k").order("Bob"),
        shop.double.bind(3),
        shop.greet.using(key="k").order("again"),
    ]
    handles = await shop.app.aenqueue_many(runs)
    rows = [await entry(conn, handle) for handle in handles]
    assert [handle.train.name for handle in handles] == ["greet", "double", "greet", "double", "greet"]
    assert [row["input"] for row in rows[:4]] == [
        '{"name": "Ada"}',
        '{"number": 2}',
        '{"name": "Bob"}',
        '{"number": 3}',
    ]
    assert handles[4].id == handles[2].id
    assert await shop.app.aenqueue_many([]) == []


@pytest.mark.parametrize("keyed", [None, "k"], ids=["alike", "one of them keyed"])
async def test_many_runs_with_the_same_options_have_them_all_and_come_back_in_their_order(shop, conn, keyed):
    using = shop.greet.using(priority=9, delay=timedelta(hours=1), group="etl")
    orders = [using.order(f"{number}") for number in range(200)]
    if keyed:
        orders.append(shop.greet.using(priority=9, delay=timedelta(hours=1), group="etl", key=keyed).order("200"))
    ids = [handle.id for handle in await shop.app.aenqueue_many(orders)]
    rows = await conn.fetch(
        "SELECT input::jsonb ->> 'name' AS name, priority, group_priority, ready, key, key_held,"
        " scheduled_at - created_at AS delay FROM interlock.work_queue JOIN unnest($1::bigint[])"
        " WITH ORDINALITY AS given (id, place) USING (id) ORDER BY place",
        ids,
    )
    assert [row["name"] for row in rows] == [str(number) for number in range(len(orders))]
    assert {(row["priority"], row["ready"], row["delay"]) for row in rows} == {(9, False, timedelta(hours=1))}
    assert [row["key"] for row in rows if row["key_held"]] == ([keyed] if keyed else [])


async def test_many_runs_are_one_statement(shop, conn):
    await shop.app.aenqueue_many([shop.double.bind(0)])
    before = await conn.fetchval("SELECT max(id) FROM interlock.work_queue")
    handles = await shop.app.aenqueue_many([shop.greet.bind(str(number)) for number in range(500)])
    written = await conn.fetchval("SELECT count(DISTINCT xmin::text) FROM interlock.work_queue WHERE id > $1", before)
    assert (len(handles), written) == (500, 1)


WAITS_FOR_LONG = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    AND clock_timestamp() - query_start > interval '0.4 seconds'
"""


async def test_a_database_that_does_not_answer_in_time_is_named(shop, conn, monkeypatch):
    await shop.greet.aenqueue("first")
    monkeypatch.setattr(Database, "command_seconds", 0.1)
    async with conn.transaction():
        await conn.execute("LOCK TABLE interlock.work_queue")
        for keyed in (None, "k"):
            with pytest.raises(DatabaseUnavailable, match=r"no answer within 0\.1\d* s; .* may be queued"):
                await shop.app.aenqueue_many([shop.greet.using(key=keyed).order("Ada"), shop.greet.bind("Bob")])
    assert await conn.fetchval("SELECT count(*) FROM interlock.work_queue") == 1


async def test_many_runs_may_take_longer_than_one(shop, conn, monkeypatch):
    await shop.greet.aenqueue("first")
    monkeypatch.setattr(Database, "command_seconds", 0.1)
    monkeypatch.setattr(gateway, "SECONDS_PER_RUN", 1.0)
    async with conn.transaction():
        await conn.execute("LOCK TABLE interlock.work_queue")
        many = asyncio.create_task(shop.app.aenqueue_many([shop.greet.bind("Ada")] * 60))

        async def waits_for_long() -> bool:
            return await conn.fetchval(WAITS_FOR_LONG) > 0

        await eventually(waits_for_long, 60, "the wait of the one who enqueues")
    assert len(await many) == 60


async def test_a_blocking_enqueue_works_in_a_thread_and_is_refused_in_an_event_loop(shop):
    handle = await asyncio.to_thread(shop.greet.enqueue, "Ada")
    assert await asyncio.to_thread(handle.status) == "queued"
    with pytest.raises(SyncCallInEventLoop):
        shop.greet.enqueue("Ada")
    with pytest.raises(SyncCallInEventLoop):
        shop.app.enqueue_many([shop.greet.bind("Ada")])
    many = await asyncio.to_thread(shop.app.enqueue_many, [shop.greet.bind("Ada"), shop.double.bind(1)])
    assert len(many) == 2


async def test_an_input_that_is_too_large_is_refused(migrated, conn):
    shop = Shop(migrated, max_input_bytes=100)
    async with shop.app:
        with pytest.raises(PayloadTooLarge):
            await shop.greet.aenqueue("x" * 100)
    assert await conn.fetchval("SELECT count(*) FROM interlock.work_queue") == 0


async def test_work_that_a_train_enqueues_names_the_execution_that_caused_it(shop, conn):
    with bound(ExecutionContext(execution_id=42, train="parent")):
        handle = await shop.greet.aenqueue("Ada")
    assert (await entry(conn, handle))["caused_by_execution_id"] == 42


async def test_each_entry_is_told(shop):
    told = []
    shop.app.events.subscribe(told.append, (WorkEnqueued,))
    handle = await shop.greet.aenqueue("Ada")
    assert [(event.entry_id, event.train, event.kind) for event in told] == [(handle.id, "greet", "adhoc")]


async def test_what_is_no_connection_is_refused(shop):
    with pytest.raises(UnsupportedConnection):
        await shop.greet.using("postgresql://somewhere").aenqueue("Ada")
    with pytest.raises(UnsupportedConnection):
        shop.greet.using(object()).enqueue("Ada")


async def test_a_new_entry_wakes_the_dispatchers_of_other_servers(shop, conn):
    heard = asyncio.Event()
    await conn.add_listener("interlock_interlock", lambda *notice: notice[3].startswith("work") and heard.set())
    await shop.greet.aenqueue("Ada")
    async with asyncio.timeout(60):
        await heard.wait()


FULL = """
    CREATE SEQUENCE public.commits;
    CREATE FUNCTION public.refuse_the_first() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF nextval('public.commits') = 1 THEN
            RAISE 'too many notifications in the NOTIFY queue' USING ERRCODE = 'program_limit_exceeded';
        END IF;
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER full_queue AFTER INSERT ON interlock.work_queue DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION public.refuse_the_first();
"""


async def test_an_enqueue_whose_commit_finds_the_queue_of_notices_full_is_written_without_one(shop, conn):
    await conn.execute(FULL)
    handle = await shop.greet.aenqueue("Ada")
    assert [row["id"] for row in await conn.fetch("SELECT id FROM interlock.work_queue")] == [handle.id]
    assert await conn.fetchval("SELECT last_value FROM public.commits") == 2


async def test_a_schema_named_after_the_app_was_made_counts_for_its_enqueues_too(migrated, conn):
    """As the flag --schema does it."""
    shop = Shop(migrated)
    shop.app.settings = override(shop.app.settings, {"schema": "tenant"})
    await shop.app.aapply_schema()
    async with shop.app:
        own = await shop.greet.aenqueue("Ada")
        mine = await shop.greet.using(conn).aenqueue("Bob")
        assert [await own.astatus(), await mine.astatus()] == ["queued", "queued"]
    assert await conn.fetchval("SELECT count(*) FROM tenant.work_queue") == 2
    assert await conn.fetchval("SELECT count(*) FROM interlock.work_queue") == 0


async def test_without_our_tables_a_client_that_did_not_open_is_told_what_to_run(database):
    shop = Shop(database)
    mine = await asyncpg.connect(database)
    try:
        for enqueue in (shop.greet, shop.greet.using(mine)):
            with pytest.raises(SchemaAbsent, match="interlock schema apply"):
                await enqueue.aenqueue("Ada")
        with psycopg.connect(database) as theirs, pytest.raises(SchemaAbsent):
            await asyncio.to_thread(shop.greet.using(theirs).enqueue, "Ada")
        with pytest.raises(SchemaAbsent):
            await shop.app.acancel_entry(1)
    finally:
        await mine.close()
        await shop.app.aclose()
