"""A tick costs what is due, not what exists: at reduced scale here, a million in `bench/manifests.py`."""

from __future__ import annotations

import pytest

from bench.manifests import DUE, World, buffers, sequential_scans
from tests.harness import databases


async def plans_of(server: str, size: int):
    dsn = databases.create_migrated(server)
    world = World(dsn, size)
    try:
        await world.fill()
        return await world.explain()
    finally:
        await world.close()
        databases.drop(server, dsn)


@pytest.mark.parametrize("size", [30_000, pytest.param(1_000_000, marks=[pytest.mark.slow, pytest.mark.timeout(400)])])
async def test_the_buffers_of_a_tick_hardly_grow_and_no_table_is_read_whole(postgres_dsn, size):
    small, large = await plans_of(postgres_dsn, 1000), await plans_of(postgres_dsn, size)
    touched = [sum(buffers(plan) for _, plan in plans) for plans in (small, large)]
    assert touched[1] <= 1.5 * touched[0]
    assert sequential_scans(large) == set()
    [load] = [plan for name, plan in large if name == "manifest/load"]
    assert load["Actual Rows"] == DUE


async def test_a_sweep_reads_only_what_is_blocked(postgres_dsn, migrated):
    from interlock.store.sql import Catalog

    world = World(migrated, 30_000)
    try:
        await world.fill()
        statement = Catalog("interlock")["manifest/sweep"]
        async with world.database.connection() as conn:
            text = f"EXPLAIN (FORMAT JSON) {statement.asyncpg}"
            plan = await conn.fetchval(text, *statement.arguments({"limit": 1000, "now": None}))
        assert '"Seq Scan"' not in plan
    finally:
        await world.close()
