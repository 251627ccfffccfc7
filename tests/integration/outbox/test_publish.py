"""Messages are written with the user's own transaction, through every kind of connection, or not at all."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from datetime import timedelta
from types import SimpleNamespace

import asyncpg
import psycopg
import pytest

from interlock import Interlock
from interlock.errors import InvalidOption, PayloadTooLarge, UnsupportedConnection
from interlock.outbox.publish import Draft


@dataclasses.dataclass
class Paid:
    order: int
    amount: float


@pytest.fixture
async def app(migrated):
    app = Interlock(migrated)
    yield app
    await app.aclose()


@pytest.fixture
async def conn(migrated):
    conn = await asyncpg.connect(migrated)
    yield conn
    await conn.close()


async def published(conn) -> list[tuple]:
    rows = await conn.fetch("SELECT topic, payload::text, key, partition FROM interlock.outbox ORDER BY id")
    return [tuple(row) for row in rows]


async def test_a_message_shares_the_fate_of_its_transaction(app, conn):
    with pytest.raises(ZeroDivisionError):  # noqa: PT012  the transaction has to end inside
        async with conn.transaction():
            await app.outbox.apublish(conn, "a", {"x": 1})
            1 / 0  # noqa: B018  the transaction fails
    assert await published(conn) == []
    async with conn.transaction():
        message_id = await app.outbox.apublish(conn, "a", Paid(1, 2.5), key="k", partition="eu", headers={"h": "v"})
    assert await published(conn) == [("a", '{"order": 1, "amount": 2.5}', "k", "eu")]
    assert (await app.outbox.aget(message_id)).headers == '{"h": "v"}'


async def test_psycopg_connections_publish_in_their_transactions(app, conn, migrated):
    async with await psycopg.AsyncConnection.connect(migrated) as other:
        await app.outbox.apublish(other, "async", [1, 2], key="k", delay=timedelta(hours=1))
        await other.commit()
        await app.outbox.apublish(other, "gone", None)
        await other.rollback()
    assert await published(conn) == [("async", "[1, 2]", "k", None)]
    await asyncio.to_thread(publish_blocking, app, migrated)
    assert [row[0] for row in await published(conn)] == ["async", "one", "two", "three"]


@pytest.mark.parametrize("client", ["asyncpg", "asyncpg pool", "psycopg async", "psycopg"])
@pytest.mark.parametrize("keeps", [True, False], ids=["commit", "rollback"])
async def test_every_client_publishes_with_its_transaction_or_not_at_all(app, conn, migrated, client, keeps):
    await CLIENTS[client](app, migrated, keeps=keeps)
    expected = [("t", '{"x": 1}', "k", None), ("u", "2", None, "eu")]
    assert await published(conn) == (expected if keeps else [])


DRAFTS = [Draft("t", {"x": 1}, key="k"), Draft("u", 2, partition="eu")]


async def with_asyncpg(app, dsn, *, keeps: bool) -> None:
    own = await asyncpg.connect(dsn)
    await publish_in(app, own, keeps=keeps)
    await own.close()


async def with_a_pool(app, dsn, *, keeps: bool) -> None:
    async with asyncpg.create_pool(dsn, min_size=1, max_size=1) as pool, pool.acquire() as own:
        await publish_in(app, own, keeps=keeps)


async def publish_in(app, own, *, keeps: bool) -> None:
    transaction = own.transaction()
    await transaction.start()
    assert len(await app.outbox.apublish_many(own, DRAFTS)) == 2
    await (transaction.commit() if keeps else transaction.rollback())


async def with_psycopg(app, dsn, *, keeps: bool) -> None:
    async with await psycopg.AsyncConnection.connect(dsn) as own:
        assert len(await app.outbox.apublish_many(own, DRAFTS)) == 2
        await (own.commit() if keeps else own.rollback())


async def with_blocking_psycopg(app, dsn, *, keeps: bool) -> None:
    def publish() -> None:
        with psycopg.connect(dsn) as own:
            assert len(app.outbox.publish_many(own, DRAFTS)) == 2
            (own.commit if keeps else own.rollback)()

    await asyncio.to_thread(publish)


CLIENTS = {
    "asyncpg": with_asyncpg,
    "asyncpg pool": with_a_pool,
    "psycopg async": with_psycopg,
    "psycopg": with_blocking_psycopg,
}


async def test_the_trace_of_the_publisher_is_stored_unless_a_header_names_another(app, conn, monkeypatch):
    """OpenTelemetry is not needed to store it, so what it would answer stands here."""
    span = SimpleNamespace(is_valid=True, trace_id=10, span_id=11, trace_flags=1)
    telemetry = SimpleNamespace(get_current_span=lambda: SimpleNamespace(get_span_context=lambda: span))
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", telemetry)
    one = await app.outbox.apublish(conn, "a", 1)
    other = await app.outbox.apublish(conn, "a", 1, headers={"traceparent": "00-aa-bb-01"})
    assert (await app.outbox.aget(one)).trace == f"00-{10:032x}-{11:016x}-01"
    assert (await app.outbox.aget(other)).trace == "00-aa-bb-01"
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    assert (await app.outbox.aget(await app.outbox.apublish(conn, "a", 1))).trace is None


def publish_blocking(app, dsn) -> None:
    with psycopg.connect(dsn) as other:
        assert app.outbox.publish(other, "one", 1, message_id="m1") == "m1"
        assert app.outbox.publish(other, "again", 1, message_id="m1") is None
        assert len(app.outbox.publish_many(other, [Draft("two", 2), Draft("three", 3, key="k")])) == 2


async def test_concurrent_writers_of_the_hosts_own_are_all_preserved(app, conn, migrated):
    async def write(writer: int) -> None:
        own = await asyncpg.connect(migrated)
        try:
            for n in range(20):
                async with own.transaction():
                    await app.outbox.apublish(own, "a", {"writer": writer, "n": n}, key=f"k{n % 3}")
        finally:
            await own.close()

    await asyncio.gather(*(write(writer) for writer in range(8)))
    rows = await conn.fetch("SELECT payload->>'writer' AS w, payload->>'n' AS n FROM interlock.outbox")
    assert {(row["w"], row["n"]) for row in rows} == {(str(w), str(n)) for w in range(8) for n in range(20)}
    assert len(rows) == 160


async def test_batches_that_name_keys_in_different_orders_do_not_deadlock(app, migrated):
    async def write(keys: list[str]) -> None:
        own = await asyncpg.connect(migrated)
        try:
            for _ in range(30):
                async with own.transaction():
                    await app.outbox.apublish_many(own, [Draft("a", None, key=key) for key in keys])
        finally:
            await own.close()

    keys = [f"k{n}" for n in range(20)]
    await asyncio.gather(write(keys), write(keys[::-1]), write(keys[10:] + keys[:10]))


@pytest.mark.parametrize(
    "wrong",
    [
        {"topic": ""},
        {"topic": "order.*"},
        {"payload": float("nan")},
        {"payload": "a\0b"},
        {"payload": object()},
        {"key": ""},
        {"message_id": "x" * 201},
        {"delay": timedelta(seconds=-1)},
        {"expires": timedelta(0)},
        {"headers": {"a": 1}},
        {"headers": ["a"]},
        {"key": "\ud800"},
        {"partition": 7},
    ],
)
async def test_what_cannot_be_published_is_refused_at_the_call(app, conn, wrong):
    options = {"topic": "a", "payload": 1, **wrong}
    with pytest.raises(InvalidOption):
        await app.outbox.apublish(conn, options.pop("topic"), options.pop("payload"), **options)
    assert await published(conn) == []


async def test_what_is_no_draft_or_no_id_of_a_handled_message_is_refused(app, conn):
    for wrong in (("a", 1), {"topic": "a"}, "a"):
        with pytest.raises(InvalidOption, match="Draft"):
            await app.outbox.apublish_many(conn, [wrong])
    for wrong in (None, "", 5):
        with pytest.raises(InvalidOption):
            await app.inbox.aonce(conn, "billing", wrong)


async def test_a_payload_that_is_too_large_or_a_strange_connection_is_refused(app, conn):
    with pytest.raises(PayloadTooLarge):
        await app.outbox.apublish(conn, "a", "x" * 2_000_000)
    with pytest.raises(UnsupportedConnection):
        await app.outbox.apublish(object(), "a", 1)


async def test_the_inbox_says_first_once_per_consumer_and_a_rollback_takes_it_back(app, conn, migrated):
    async with conn.transaction():
        assert await app.inbox.aonce(conn, "billing", "m1")
        assert not await app.inbox.aonce(conn, "billing", "m1")
        assert await app.inbox.aonce(conn, "mail", "m1")
    with pytest.raises(ZeroDivisionError):  # noqa: PT012  the transaction has to end inside
        async with conn.transaction():
            assert await app.inbox.aonce(conn, "billing", "m2")
            1 / 0  # noqa: B018  the transaction fails
    assert await app.inbox.aonce(conn, "billing", "m2")

    def blocking() -> bool:
        with psycopg.connect(migrated) as other:
            return app.inbox.once(other, "billing", "m1")

    assert not await asyncio.to_thread(blocking)


async def test_two_transactions_that_handle_one_message_at_once_do_so_one_after_the_other(app, conn, migrated):
    other = await asyncpg.connect(migrated)
    try:
        transaction = conn.transaction()
        await transaction.start()
        assert await app.inbox.aonce(conn, "billing", "m")
        second = asyncio.create_task(app.inbox.aonce(other, "billing", "m"))
        done, _ = await asyncio.wait({second}, timeout=0.2)
        assert not done
        await transaction.commit()
        assert await second is False
    finally:
        await other.close()
