"""Why a claim comes before the emit: the obvious way, select, emit, then save, delivers twice."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from interlock import Interlock
from interlock.model.message import ClaimRequest, Road
from tests.integration.outbox.places import LEASE, PostgresPlace


@pytest.fixture
async def app(migrated):
    app = Interlock(migrated)
    yield app
    await app.aclose()


async def save(conn: asyncpg.Connection, id: int) -> bool:  # noqa: A002  the row's own word
    """Guarded by the state, as optimistic concurrency would: the second save fails, after the fact."""
    return bool(
        await conn.fetchval(
            "UPDATE interlock.outbox SET state = 'delivered', ended_at = now()"
            " WHERE id = $1 AND state = 'pending' RETURNING true",
            id,
        )
    )


async def test_control_two_workers_that_select_then_emit_then_save_emit_twice(app, migrated):
    place = await PostgresPlace(migrated).open()
    await place.publish("a")
    both_selected, emitted, saved = asyncio.Barrier(2), [], []

    async def naive_worker(name: str) -> None:
        conn = await asyncpg.connect(migrated)
        try:
            [message] = await app.outbox.afind_pending()
            await both_selected.wait()
            emitted.append((name, message.message_id))
            saved.append(await save(conn, message.id))
        finally:
            await conn.close()

    await asyncio.gather(naive_worker("one"), naive_worker("two"))
    assert len(emitted) == 2
    assert sorted(saved) == [False, True]
    await place.close()


async def test_two_workers_that_claim_first_emit_once(migrated):
    place = await PostgresPlace(migrated).open()
    await place.publish("a")
    both_ready, emitted = asyncio.Barrier(2), []

    async def worker(store, token: str) -> None:
        await both_ready.wait()
        request = ClaimRequest([Road("^a$", 3)], 10, LEASE, token)
        emitted.extend(each.message_id for each in (await store.claim(request)).messages)

    tokens = ("00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002")
    await asyncio.gather(*(worker(*each) for each in zip(place.stores(2), tokens, strict=True)))
    assert len(emitted) == 1
    await place.close()


async def test_looking_claims_nothing(app, migrated):
    place = await PostgresPlace(migrated).open()
    await place.publish("a")
    assert await app.outbox.afind_pending() == await app.outbox.afind_pending("a")
    assert await app.outbox.afind_retry_ready() == []
    assert (await place.row(1))["claims"] == 0
    await place.close()
