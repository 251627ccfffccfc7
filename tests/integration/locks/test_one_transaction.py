"""A hold, an enqueue and an outbox message in one transaction of the user: all of them happen, or none."""

from __future__ import annotations

from contextlib import asynccontextmanager

import asyncpg
import psycopg
import pytest

from interlock import Interlock
from interlock.runtime.portal import portal


def shop(dsn: str) -> Interlock:
    app = Interlock(dsn)

    @app.train(name="greet")
    async def greet(name: str) -> str:
        return name

    app.greet = greet
    return app


@asynccontextmanager
async def asyncpg_transaction(dsn: str, *, commits: bool):
    conn = await asyncpg.connect(dsn)
    transaction = conn.transaction()
    await transaction.start()
    yield conn
    await (transaction.commit() if commits else transaction.rollback())
    await conn.close()


@asynccontextmanager
async def psycopg_transaction(dsn: str, *, commits: bool):
    conn = await psycopg.AsyncConnection.connect(dsn)
    yield conn
    await (conn.commit() if commits else conn.rollback())
    await conn.close()


async def written(dsn: str) -> tuple[int, int]:
    """How many entries and messages there are."""
    conn = await asyncpg.connect(dsn)
    entries = await conn.fetchval("SELECT count(*) FROM interlock.work_queue")
    messages = await conn.fetchval("SELECT count(*) FROM interlock.outbox")
    await conn.close()
    return entries, messages


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("transaction", [asyncpg_transaction, psycopg_transaction])
async def test_they_share_the_fate_of_the_transaction(migrated, transaction, commits):
    async with shop(migrated) as app:
        async with transaction(migrated, commits=commits) as conn:
            held = await app.locks.ahold_in(conn, "import")
            await app.greet.using(conn).aenqueue("Ada")
            await app.outbox.apublish(conn, "imported", {"fence": held.fence})
            assert await app.locks.atry_hold("import") is None
            assert await written(migrated) == (0, 0)
        assert await written(migrated) == (int(commits), int(commits))
        async with app.locks.hold("import") as lease:
            assert lease.fence > held.fence


@pytest.mark.parametrize("commits", [True, False])
def test_they_share_the_fate_of_a_blocking_transaction(migrated, commits):
    with shop(migrated) as app, psycopg.connect(migrated) as conn:
        held = app.locks.hold_in(conn, "import")
        app.greet.using(conn).enqueue("Ada")
        app.outbox.publish(conn, "imported", {"fence": held.fence})
        assert app.locks.try_hold("import") is None
        assert portal.call(written, migrated) == (0, 0)
        (conn.commit if commits else conn.rollback)()
        assert portal.call(written, migrated) == (int(commits), int(commits))
        with app.locks.hold("import") as lease:
            assert lease.fence > held.fence
    portal.close()


@pytest.mark.parametrize("transaction", [asyncpg_transaction, psycopg_transaction])
async def test_control_what_is_written_beside_the_transaction_stays_when_it_is_rolled_back(migrated, transaction):
    async with shop(migrated) as app:
        async with transaction(migrated, commits=False) as conn, transaction(migrated, commits=True) as beside:
            await app.locks.ahold_in(conn, "import")
            await app.greet.aenqueue("Ada")
            await app.outbox.apublish(beside, "imported")
        assert await written(migrated) == (1, 1)
