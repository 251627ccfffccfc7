"""An explanation reads a few rows by index, however long the history and the queue are."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from interlock.store.sql import Catalog

ROWS = 20_000
LARGE = {"execution", "work_queue"}
FILL = """
INSERT INTO interlock.work_queue (state, kind, train, input, attempt, max_attempts, max_crashes, retry_delay,
    max_retry_delay, retry_backoff, group_id, group_priority, priority, ready, left_at)
SELECT CASE WHEN n % 2 = 0 THEN 'queued' ELSE 'dispatched' END, 'adhoc', 'work', '{{}}', 1, 1, 1, '1 s', '1 s', 1, 1, 0,
    n % 10, true, CASE WHEN n % 2 = 1 THEN now() END
FROM generate_series(1, {rows}) n;
INSERT INTO interlock.execution (state, entry_id, first_entry_id, kind, train, input, group_id, attempt, crashes,
    max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, ended_at)
SELECT 'completed', n, n, 'adhoc', 'work', '{{}}', 1, 1, 0, 1, 1, '1 s', '1 s', 1, now()
FROM generate_series(1, {rows}) n;
ANALYZE interlock.work_queue, interlock.execution;
"""
ARGUMENTS = {
    "lineage": {"execution_id": 5, "entry_id": None},
    "entry": {"id": None, "lineage": 5},
    "execution": {"id": None, "lineage": 5},
    "manifest": {"id": None, "external_id": "m"},
    "surroundings": {"train": "work", "group_id": 1, "excluded": [], "most": 1000, "now": None},
    "holders": {"group_id": 1, "most": 1000, "limit": 5},
}

WATCHED = {
    "gauges": {"most": 10_000, "window": timedelta(minutes=1), "now": None},
    "running": {"now": None},
    "groups": {},
    "orphans": {"most": 10_000},
}


@pytest.fixture
async def filled(station):
    await station.conn.execute(FILL.format(rows=ROWS))
    return station


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
async def test_no_statement_reads_a_large_table_whole(filled, name):
    statement = Catalog("interlock")[f"explain/{name}"]
    values = statement.arguments(ARGUMENTS[name])
    plan = json.loads(await filled.conn.fetchval(f"EXPLAIN (FORMAT JSON) {statement.asyncpg}", *values))
    assert [node for node in nodes(plan[0]["Plan"]) if node.get("Node Type") == "Seq Scan"
            and node["Relation Name"] in LARGE] == []  # fmt: skip


@pytest.mark.parametrize("name", sorted(WATCHED))
async def test_what_is_looked_at_every_second_reads_no_history(filled, name):
    statement = Catalog("interlock")[f"doctor/{name}"]
    analyzed = f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.asyncpg}"
    plan = json.loads(await filled.conn.fetchval(analyzed, *statement.arguments(WATCHED[name])))
    executions = [node for node in nodes(plan[0]["Plan"]) if node.get("Relation Name") == "execution"]
    assert executions
    assert [node["Node Type"] for node in executions if node["Node Type"] == "Seq Scan"] == []


async def test_counting_who_comes_first_reads_no_lane_beyond_the_limit(filled):
    statement = Catalog("interlock")["explain/entries_ahead"]
    last = await filled.conn.fetchrow(
        "SELECT * FROM interlock.work_queue WHERE state = 'queued' ORDER BY priority, created_at DESC, id DESC LIMIT 1"
    )
    values = {"rivals": ["work"], "rank": 0, "priority": last["priority"], "created_at": last["created_at"],
              "id": last["id"], "most": 1000}  # fmt: skip
    analyzed = f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.asyncpg}"
    plan = json.loads(await filled.conn.fetchval(analyzed, *statement.arguments(values)))
    read = [
        node["Actual Rows"] * node["Actual Loops"]
        for node in nodes(plan[0]["Plan"])
        if node.get("Relation Name") == "work_queue"
    ]
    assert 1000 <= max(read) <= 1001


def nodes(plan):
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)
