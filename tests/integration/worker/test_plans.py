"""The worker's statements look rows up by key, whatever lies in the tables and whatever the statistics say.

A statement is planned as the worker plans it: on its own line, also from a plan that was made while all was empty.
"""

from __future__ import annotations

from uuid import uuid4

import pytest

from interlock.store.line import Line

HISTORY = """
INSERT INTO interlock.execution (state, entry_id, first_entry_id, kind, train, input, group_id, attempt, crashes,
    max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, created_at, ended_at)
SELECT 'completed', -n, -n, 'adhoc', 'work', '{}', 1, 1, 0, 3, 3, '1 s', '1 s', 1, now(), now()
FROM generate_series(1, $1) n
"""
FUTURE = """
INSERT INTO interlock.work_queue (kind, train, input, attempt, max_attempts, max_crashes, retry_delay, max_retry_delay,
    retry_backoff, group_id, group_priority, priority, scheduled_at, ready)
SELECT 'adhoc', 'work', '{}', 1, 3, 3, '1 s', '1 s', 1, 1, 0, 0, now() + interval '1 d', false
FROM generate_series(1, $1) n
"""
ARGUMENTS = {
    "background_job/claim": "ARRAY['work'], gen_random_uuid(), 50, 'h', gen_random_uuid(), NULL",
    "background_job/recall": "gen_random_uuid(), gen_random_uuid()",
    "execution/complete": "NULL, ARRAY[1, 2]::bigint[], ARRAY[gen_random_uuid(), gen_random_uuid()], '{1, 2}'::jsonb[]",
    "execution/watch": "ARRAY[1, 2]::bigint[], ARRAY[gen_random_uuid(), gen_random_uuid()]",
    "execution/lost": "interval '1 minute', 500",
    "execution/lock_entries": "ARRAY[1, 2]::bigint[]",
    "background_job/release": "ARRAY[1, 2]::bigint[], ARRAY[gen_random_uuid(), gen_random_uuid()]",
}
BIG = ("execution", "work_queue")


async def plan(conn, statement, *, generic: bool) -> list[str]:
    await conn.execute(f"SET plan_cache_mode = force_{'generic' if generic else 'custom'}_plan")
    await conn.execute(f"PREPARE looked_at AS {statement.asyncpg}")
    rows = await conn.fetch(f"EXPLAIN EXECUTE looked_at({ARGUMENTS[statement.name]})")
    await conn.execute("DEALLOCATE looked_at")
    return [row[0] for row in rows]


def reads_whole(lines: list[str]) -> list[str]:
    return [line for line in lines if any(f"Seq Scan on {table} " in line for table in BIG)]


@pytest.mark.parametrize("generic", [True, False], ids=["generic", "custom"])
@pytest.mark.parametrize("name", ARGUMENTS)
async def test_no_statement_of_the_worker_reads_the_history(door, yard, name, generic):
    await yard.conn.execute(HISTORY, 20_000)
    await yard.conn.execute(FUTURE, 5_000)
    for _ in range(20):
        await yard.dispatch()
    await yard.conn.execute("ANALYZE")
    async with door.connection() as conn:
        assert reads_whole(await plan(conn, door.sql[name], generic=generic)) == []


async def test_a_plan_made_while_the_tables_were_empty_still_looks_up_by_key(door, yard):
    line = Line(door, "test", by_key=True)
    await yard.conn.execute("VACUUM ANALYZE interlock.execution")
    try:
        async with line.connection() as conn:
            for name in ("background_job/claim", "execution/complete"):
                assert reads_whole(await plan(conn, door.sql[name], generic=True)) == []
    finally:
        await line.close()


async def test_control_an_ordinary_connection_plans_to_read_the_empty_table_as_a_whole(door, yard):
    await yard.conn.execute("VACUUM ANALYZE interlock.execution")
    async with door.connection() as conn:
        assert reads_whole(await plan(conn, door.sql["execution/complete"], generic=True))


async def test_recovery_reads_no_execution_while_no_server_has_ended(door, yard):
    await yard.claimed(await yard.dispatch(), server=uuid4())
    async with door.connection() as conn:
        await conn.execute(f"PREPARE looked_at AS {door.sql['execution/lost'].asyncpg}")
        rows = await conn.fetch("EXPLAIN (ANALYZE, FORMAT TEXT) EXECUTE looked_at(interval '1 minute', 500)")
        await conn.execute("DEALLOCATE looked_at")
    scans = [row[0] for row in rows if "execution" in row[0] and "Scan" in row[0]]
    assert scans
    assert all("never executed" in scan for scan in scans)
