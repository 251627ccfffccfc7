"""A user's own connection that leads to a database without our tables: every feature says so in one typed error."""

from __future__ import annotations

import asyncio

import asyncpg
import psycopg
import pytest

from interlock import Draft, Interlock
from interlock.errors import TablesMissing


def shop(dsn: str) -> Interlock:
    app = Interlock(dsn)

    @app.train(name="greet")
    async def greet(name: str) -> str:
        return name

    app.greet = greet
    return app


AWAITED = {
    "enqueue": lambda app, conn: app.greet.using(conn).aenqueue("Ada"),
    "enqueue many": lambda app, conn: app.aenqueue_many([app.greet.bind("Ada"), app.greet.bind("Bob")], conn=conn),
    "publish": lambda app, conn: app.outbox.apublish(conn, "order.paid", {"id": 1}),
    "publish in order": lambda app, conn: app.outbox.apublish_many(conn, [Draft("order.paid", key="order:1")]),
    "receive": lambda app, conn: app.inbox.aonce(conn, "billing", "m-1"),
    "hold": lambda app, conn: app.locks.ahold_in(conn, "report"),
}
BLOCKING = {
    "enqueue": lambda app, conn: app.greet.using(conn).enqueue("Ada"),
    "publish": lambda app, conn: app.outbox.publish(conn, "order.paid", {"id": 1}),
    "receive": lambda app, conn: app.inbox.once(conn, "billing", "m-1"),
    "hold": lambda app, conn: app.locks.hold_in(conn, "report"),
}


@pytest.mark.parametrize("connect", [asyncpg.connect, psycopg.AsyncConnection.connect], ids=["asyncpg", "psycopg"])
@pytest.mark.parametrize("call", AWAITED.values(), ids=AWAITED)
async def test_missing_tables_are_a_typed_error_that_says_what_to_run(migrated, database, connect, call):
    app, mine = shop(migrated), await connect(database)
    try:
        with pytest.raises(TablesMissing, match=r"does not exist\); is it the one that the app uses\?") as refused:
            await call(app, mine)
        assert str(refused.value).endswith("run: interlock schema apply")
        assert refused.value.__cause__.sqlstate in {"42P01", "3F000"}
    finally:
        await mine.close()
        await app.aclose()


@pytest.mark.parametrize("call", BLOCKING.values(), ids=BLOCKING)
async def test_so_they_are_in_blocking_code(migrated, database, call):
    app = shop(migrated)
    try:
        with psycopg.connect(database) as mine, pytest.raises(TablesMissing):
            await asyncio.to_thread(call, app, mine)
    finally:
        await app.aclose()


async def test_what_a_statement_raises_otherwise_stays_the_drivers_own(migrated):
    app, mine = shop(migrated), await asyncpg.connect(migrated)
    try:
        await mine.execute("SET default_transaction_read_only = on")
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            await app.outbox.apublish(mine, "order.paid")
    finally:
        await mine.close()
        await app.aclose()
