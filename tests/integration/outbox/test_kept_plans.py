"""A plan that a worker's connection made while nothing was pending serves as well when much is.

Statistics say that nothing is pending whenever the table was analyzed while the drain kept up, and a burst comes before
the next analysis. A plan that trusts them walks all that is pending for each message that it looks for.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock.model.message import NewMessage, Settlement, Settling
from interlock.store.adapters.asyncpg import AsyncpgAdapter
from interlock.store.adapters.protocol import run
from interlock.store.outbox import OutboxMessages
from interlock.store.sql import Catalog
from tests.harness.unguarded import take_guard_off
from tests.integration.outbox.places import PostgresPlace, lanes, request

PENDING, BATCH = 5_000, 50
FEW = 40 * BATCH
DIED = """
INSERT INTO interlock.outbox (topic, payload, key, bucket, state, ended_at)
SELECT 't', '{}', 'dead' || n, n % 1024, 'dead', clock_timestamp() FROM generate_series(1, $1::integer) n
"""
READ = """
SELECT sum(pg_stat_get_xact_tuples_returned(oid))::bigint FROM pg_class
WHERE oid = 'interlock.outbox'::regclass
   OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 'interlock.outbox'::regclass)
"""


@pytest.fixture
async def place(migrated):
    place = await PostgresPlace(migrated).open()
    await place.conn.execute("ALTER TABLE interlock.outbox SET (autovacuum_enabled = false)")
    await place.conn.execute("VACUUM ANALYZE interlock.outbox")
    yield place
    await place.close()


def verbs(messages: OutboxMessages, wanted, found: list):
    """What a drain does with what it claims, by name."""

    def held():
        return [(each.id, wanted.token) for each in found]

    def settled(outcome: Settling):
        return [Settlement(*each, outcome, failure="no") for each in held()]

    return {
        "renew": lambda conn: messages.renew(conn, held(), lease=timedelta(minutes=1)),
        "release": lambda conn: messages.release(conn, held(), delay=timedelta(0), now=None),
        "settle": lambda conn: messages.settle(conn, settled(Settling.DEAD), host=None, now=None),
        "deliver": lambda conn: messages.deliver(conn, settled(Settling.DELIVERED), now=None),
    }


async def reads_of(conn, wanted, names) -> dict[str, int]:
    """How many rows and index entries a claim reads, and each of these verbs after it; nothing of it stays."""
    messages, read = OutboxMessages(Catalog("interlock")), {}
    transaction = conn.transaction()
    await transaction.start()
    found = (await messages.claim(conn, wanted, now=None)).messages
    last = read["claim"] = await conn.fetchval(READ)
    for name in names:
        nested = conn.transaction()
        await nested.start()
        await verbs(messages, wanted, found)[name](conn)
        await nested.rollback()
        now = await conn.fetchval(READ)
        read[name], last = now - last, now
    await transaction.rollback()
    assert len(found) in (0, wanted.limit)
    return read


async def burst(place: PostgresPlace) -> None:
    messages = [NewMessage("t", "1", key=f"k{n % 100}") for n in range(PENDING)]
    await run(AsyncpgAdapter(place.conn), OutboxMessages(Catalog("interlock")).publish(messages, now=None))


async def reads_in_a_burst(place: PostgresPlace, wanted) -> dict[str, int]:
    await reads_as_drained(place, wanted)
    await burst(place)
    return await reads_as_drained(place, wanted)


async def reads_as_drained(place: PostgresPlace, wanted) -> dict[str, int]:
    """Each verb on the kind of connection on which the drain runs it."""
    async with place.store._by_key() as conn:
        by_key = await reads_of(conn, wanted, ("renew", "release"))
    async with place.store._claiming.connection() as conn:
        return by_key | await reads_of(conn, wanted, ("settle", "deliver"))


WANTED = {
    "claim": request("t", limit=BATCH),
    "ordered": lanes("t", limit=BATCH)._replace(depth=8),
}


@pytest.mark.parametrize("wanted", WANTED.values(), ids=WANTED)
async def test_a_burst_after_quiet_times_is_not_walked_to_find_what_is_claimed(place, wanted):
    found = await reads_in_a_burst(place, wanted)
    assert {verb: read for verb, read in found.items() if read > FEW} == {}


async def test_what_died_since_is_not_walked_for_each_message_that_may_have_to_wait_for_it(place):
    """A plan that was made while nothing was dead finds the dead of a key by the key all the same."""
    await reads_as_drained(place, WANTED["ordered"])
    await place.conn.execute(DIED, PENDING)
    await burst(place)
    assert (await reads_as_drained(place, WANTED["ordered"]))["claim"] < FEW


@pytest.mark.parametrize(
    ("verb", "token"),
    [
        ("deliver", "      and o.claim_token = g.token\n"),
        ("settle", "      and o.claim_token = g.token\n"),
        ("claim", "    where o.id = p.id\n"),
    ],
)
async def test_control_a_statement_that_asks_for_the_state_again_walks_all_that_is_pending(
    place, monkeypatch, verb, token
):
    take_guard_off(monkeypatch, {f"outbox/{verb}": token}, token + "      and o.state = 'pending'\n")
    assert (await reads_in_a_burst(place, WANTED["claim"]))[verb] > FEW
