"""A cleaning reads what goes, and not the history beside it, whatever the statistics say."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from interlock.store.sql import Catalog
from tests.harness import databases

if TYPE_CHECKING:
    from collections.abc import Iterator

SQL = Catalog("interlock")
ROWS = 30_000
POLICY = "1, 3, 3, '5 min', '1 h', 2"
COLUMNS = "attempt, max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff"
HISTORY = f"""
INSERT INTO interlock.execution (state, entry_id, first_entry_id, kind, train, input, group_id, crashes, {COLUMNS},
    created_at, ended_at)
SELECT 'completed', n, n, 'adhoc', 'train' || n % 4, '{{}}', 1, 0, {POLICY}, now(), now() - n * interval '100 s'
FROM generate_series(1, {ROWS}) n
"""
ENTRIES = f"""
INSERT INTO interlock.work_queue (state, kind, train, input, {COLUMNS}, group_id, group_priority, priority, ready,
    execution_id, left_at)
SELECT 'dispatched', 'adhoc', 'work', '{{}}', {POLICY}, 1, 0, 9, true, n, now() - n * interval '1 s'
FROM generate_series(1, {ROWS}) n
"""
LETTERS = f"""
INSERT INTO interlock.dead_letter (state, reason, kind, train, input, first_entry_id, execution_id, group_id, priority,
    attempts, resolved_at)
SELECT 'acknowledged', 'max_attempts', 'adhoc', 'work', '{{}}', n, n, 1, 0, 3, now() - n * interval '100 s'
FROM generate_series(1, {ROWS}) n
"""
ACTS = f"""
INSERT INTO interlock.audit (at, actor, via, action, target_kind, target)
SELECT now() - ({ROWS} - n) * interval '1000 s', 'ada', 'cli', 'trigger', 'manifest', 'm' || n
FROM generate_series(1, {ROWS}) n
"""
# train0 keeps a year, train1 an hour: neither may make the others be read.
TRAINS = "INSERT INTO interlock.train (name, retention) VALUES ('train0', '1 year'), ('train1', '1 hour')"


@pytest.fixture(scope="module", params=["analyzed when empty", "analyzed when full"])
def populated(request, postgres_dsn) -> Iterator[str]:
    dsn = databases.create_migrated(postgres_dsn)
    databases.run_blocking(populate(dsn, analyzed=request.param.endswith("full")))
    yield dsn
    databases.drop(postgres_dsn, dsn)


async def populate(dsn: str, *, analyzed: bool) -> None:
    conn = await asyncpg.connect(dsn)
    try:
        for table in ("execution", "work_queue", "dead_letter", "audit"):
            await conn.execute(f"ALTER TABLE interlock.{table} SET (autovacuum_enabled = false)")
        await conn.execute("ANALYZE")
        for statement in (HISTORY, ENTRIES, LETTERS, ACTS, TRAINS):
            await conn.execute(statement)
        if analyzed:
            await conn.execute("ANALYZE")
    finally:
        await conn.close()


@pytest.fixture(params=["force_generic_plan", "force_custom_plan"])
async def forget(request, populated):
    """Plans and runs the deletion of at most a hundred rows, and takes it back."""
    conn = await asyncpg.connect(populated)
    transaction = conn.transaction()
    await transaction.start()
    await conn.execute(f"SET LOCAL plan_cache_mode = {request.param}")

    async def forget(name: str, older_than: timedelta, window: timedelta | None = None) -> dict[str, Any]:
        statement = SQL[name]
        await conn.execute(f"PREPARE looked_at AS {statement.asyncpg}")
        values = {"older_than": older_than, "limit": 100, "now": None}
        if "execution" in name:
            values["window"] = window
        arguments = ", ".join("NULL" if value is None else f"'{value}'" for value in statement.arguments(values))
        text = await conn.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE looked_at({arguments})")
        return json.loads(text)[0]["Plan"]

    yield forget
    await transaction.rollback()
    await conn.close()


def touched(plan: dict[str, Any]) -> int:
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def sequential(plan: dict[str, Any]) -> set[str]:
    """The tables that are read from one end to the other."""
    found = {plan["Relation Name"]} if plan["Node Type"] == "Seq Scan" else set()
    return found.union(*(sequential(child) for child in plan.get("Plans", ())))


@pytest.mark.parametrize(
    ("name", "older_than"),
    [
        ("execution/forget", timedelta(days=30)),
        ("work_queue/forget", timedelta(hours=1)),
        ("dead_letter/forget", timedelta(days=30)),
        ("audit/forget", timedelta(days=300)),
    ],
)
async def test_a_batch_reads_what_it_deletes(forget, name, older_than):
    plan = await forget(name, older_than)
    assert plan["Actual Rows"] == 100
    assert sequential(plan) & {"execution", "work_queue", "dead_letter", "audit"} == set()
    assert touched(plan) < 3_000


@pytest.mark.parametrize("name", ["work_queue/forget", "audit/forget"])
async def test_nothing_to_delete_costs_next_to_nothing(forget, name):
    plan = await forget(name, timedelta(days=400))
    assert plan["Actual Rows"] == 0
    assert touched(plan) < 20


async def test_what_had_to_stay_is_not_read_again(forget, populated):
    """All that is older than the window is the last success of something, or as good as that."""
    plan = await forget("execution/forget", timedelta(days=10), window=timedelta(seconds=1))
    assert plan["Actual Rows"] <= 1
    assert touched(plan) < 200
