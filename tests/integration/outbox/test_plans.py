"""The claims find what is due by their indexes, however much was delivered or lies in the future."""

from __future__ import annotations

import re
from datetime import timedelta
from uuid import uuid4

import asyncpg
import pytest

from interlock.model.message import LEAST_SHARE
from interlock.store.sql import Catalog

CLAIM = {
    "patterns": ["^t.*$"],
    "crash_limits": [3],
    "windows": [None],
    "rooms": [True],
    "topics": None,
    "partitions": None,
    "isolated": False,
    "limit": 100,
    "lease": timedelta(seconds=30),
    "token": uuid4(),
    "server": None,
    "host": None,
    "now": None,
}
LANES = {
    **CLAIM,
    "holds": [True],
    "buckets": list(range(1024)),
    "first": 0,
    "last": 1023,
    "blocked_keys": [],
    "depth": 8,
    "stretch": 3,
}
FILL = """
INSERT INTO interlock.outbox (topic, payload, key, bucket, state, available_at, ended_at)
SELECT 't' || n % 5, '{}', 'k' || n % 500, (n % 500)::smallint,
    CASE WHEN n % 2 = 0 THEN 'delivered' ELSE 'pending' END, clock_timestamp() + interval '1 day',
    CASE WHEN n % 2 = 0 THEN clock_timestamp() END
FROM generate_series(1, $1::integer) n
"""


@pytest.mark.parametrize("size", [30_000, pytest.param(1_000_000, marks=[pytest.mark.slow, pytest.mark.timeout(300)])])
@pytest.mark.parametrize(
    ("name", "values"), [("outbox/claim", {**CLAIM, "least_share": LEAST_SHARE}), ("outbox/claim_lanes", LANES)]
)
async def test_a_claim_reads_a_few_pages_of_a_large_table(migrated, size, name, values):
    conn = await asyncpg.connect(migrated)
    try:
        await conn.execute(FILL, size)
        await conn.execute(
            "INSERT INTO interlock.outbox (topic, payload) SELECT 't1', '{}' FROM generate_series(1, 50)"
        )
        await conn.execute("ANALYZE interlock.outbox")
        statement = Catalog("interlock")[name]
        plan = "\n".join(
            row[0]
            for row in await conn.fetch(
                f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) {statement.asyncpg}", *statement.arguments(values)
            )
        )
    finally:
        await conn.close()
    assert not re.search(r"Seq Scan on outbox\b", plan), plan
    assert "outbox_for_" in plan
    hit, read = re.search(r"Buffers: shared hit=(\d+)(?: read=(\d+))?", plan).groups()
    assert int(hit) + int(read or 0) < 20_000, plan
