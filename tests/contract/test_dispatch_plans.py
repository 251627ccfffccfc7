"""Dispatch and enqueue read through their indexes, however much history and future lies beside what is due.

Queues are often analyzed when they are empty and used when they are full, so each plan is looked at in both states of
the statistics, and both as PostgreSQL plans it for the values and as it plans it for any values.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from interlock.store.sql import Catalog
from tests.harness import databases

if TYPE_CHECKING:
    from collections.abc import Iterator

SQL = Catalog("interlock")
LARGE = {"work_queue", "execution"}
POLICY = "1, 3, 3, '5 min', '1 h', 2"
COLUMNS = "attempt, max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff"
HISTORY = f"""
INSERT INTO interlock.execution (state, entry_id, first_entry_id, kind, train, input, group_id, crashes, {COLUMNS},
    created_at, ended_at)
SELECT 'completed', n, n, 'adhoc', 'work', '{{}}', 1 + n % 5, 0, {POLICY}, now() - interval '2 d',
    now() - interval '1 d'
FROM generate_series(1, $1) n
"""
FUTURE = f"""
INSERT INTO interlock.work_queue (kind, train, input, {COLUMNS}, group_id, group_priority, priority, scheduled_at,
    ready)
SELECT 'adhoc', 'work', '{{}}', {POLICY}, 1 + n % 5, 0, 63, now() + interval '1 d', false FROM generate_series(1, $1) n
"""
READY = f"""
INSERT INTO interlock.work_queue (kind, train, input, {COLUMNS}, group_id, group_priority, priority, ready)
SELECT 'adhoc', 'work', '{{}}', {POLICY}, 1 + n % 5, 0, 9, true FROM generate_series(1, $1) n
"""
ACTIVE = f"""
INSERT INTO interlock.execution (entry_id, first_entry_id, kind, train, input, group_id, crashes, {COLUMNS})
SELECT n, n, 'adhoc', 'work', '{{}}', 1 + n % 5, 0, {POLICY} FROM generate_series(1, 50) n
"""
SERVER = """
INSERT INTO interlock.server (id, name, roles, trains, tags, slots, host, pid, version, lease, lease_until, renewed_at,
    steady_since, started_at)
SELECT gen_random_uuid(), 's', '{}', '{}', '{}', 1, 'h', 1, '0', '1 min', now() + interval '1 min', now(), now(), now()
RETURNING id
"""
CLEAN = "VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) interlock.work_queue, interlock.execution"
BY_KEY = """
SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;
SET LOCAL enable_bitmapscan = off
"""
SCALES = [
    pytest.param((60_000, 10_000, 5_000), id="reduced"),
    pytest.param((1_000_000, 100_000, 20_000), id="full", marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
]


@pytest.fixture(scope="module", params=SCALES)
def populated(request, postgres_dsn) -> Iterator[tuple[str, int]]:
    dsn = databases.create_migrated(postgres_dsn)
    databases.run_blocking(populate(dsn, *request.param))
    yield dsn, request.param[2]
    databases.drop(postgres_dsn, dsn)


async def populate(dsn: str, history: int, future: int, ready: int) -> None:
    conn = await asyncpg.connect(dsn, command_timeout=600)
    try:
        await conn.execute("INSERT INTO interlock.manifest_group (name) SELECT 'g' || n FROM generate_series(2, 5) n")
        await conn.execute("ALTER TABLE interlock.work_queue SET (autovacuum_enabled = false)")
        await conn.execute("ALTER TABLE interlock.execution SET (autovacuum_enabled = false)")
        await conn.execute(HISTORY, history)
        await conn.execute(FUTURE, future)
        await conn.execute(ACTIVE)
        await conn.execute("VACUUM ANALYZE")
        await conn.execute(READY, ready)
    finally:
        await conn.close()


@pytest.fixture(params=["analyzed when empty", "analyzed when full"])
async def conn(request, populated):
    """What a test rolls back is cleaned away, because the next one would have to pass it on its way."""
    conn = await asyncpg.connect(populated[0])
    transaction = conn.transaction()
    await transaction.start()
    if request.param == "analyzed when full":
        await conn.execute("ANALYZE interlock.work_queue")
    yield conn
    await transaction.rollback()
    await conn.execute(CLEAN)
    await conn.close()


@pytest.fixture(params=["force_generic_plan", "force_custom_plan"])
async def explain(request, conn):
    await conn.execute(f"SET LOCAL plan_cache_mode = {request.param}")

    async def explain(name: str, **values: Any) -> dict[str, Any]:
        statement = SQL[name]
        await conn.execute("DEALLOCATE ALL")
        await conn.execute(f"PREPARE looked_at AS {statement.asyncpg}")
        arguments = ", ".join(literal(value) for value in statement.arguments(values))
        text = await conn.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE looked_at({arguments})")
        return json.loads(text)[0]["Plan"]

    return explain


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return "'{" + ",".join("NULL" if one is None else str(one) for one in value) + "}'"
    return f"'{value}'"


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def scans(plan: dict[str, Any]) -> set[tuple[str, str]]:
    """Each large table that is read, and the index it is read through."""
    indexes = {
        (node.get("Relation Name", node.get("Alias", "")), node.get("Index Name", node["Node Type"]))
        for node in nodes(plan)
        if node["Node Type"] in {"Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Heap Scan", "Bitmap Index Scan"}
    }
    return {(table, index) for table, index in indexes if table in LARGE}


def touched(plan: dict[str, Any]) -> int:
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


async def candidates(conn, count: int) -> list[int]:
    rows = await conn.fetch("SELECT id FROM interlock.work_queue WHERE ready ORDER BY id LIMIT $1", count)
    return [row[0] for row in rows]


async def test_the_lanes_are_found_with_one_probe_each(explain):
    plan = await explain("dispatch/lanes", trains=["work", "other"], count_waiting=True)
    assert scans(plan) == {("work_queue", "work_queue_for_dispatch")}
    assert touched(plan) < 200


async def test_candidates_come_from_the_heads_of_their_lanes(explain):
    plan = await explain(
        "dispatch/load",
        group_ids=[1, 2, 3, 4, 5],
        trains=["work"] * 5,
        group_priorities=[0] * 5,
        limits=[200] * 5,
        limit=100,
        chosen=[],
    )
    assert scans(plan) == {("work_queue", "work_queue_for_dispatch"), ("work_queue", "work_queue_pkey")}
    assert touched(plan) < 5_000


async def test_a_dispatch_touches_what_it_dispatches(explain, conn):
    ids = await candidates(conn, 100)
    plan = await explain(
        "dispatch/hand_over",
        ids=ids,
        group_priorities=[0] * len(ids),
        sequence="interlock.execution_id_seq",
        now=None,
    )
    assert scans(plan) == {("work_queue", "work_queue_pkey")}
    assert plan["Actual Rows"] == 100
    assert touched(plan) < 6_000


async def test_a_dispatch_in_one_statement_touches_what_it_dispatches(explain, conn):
    await conn.execute(BY_KEY)
    server = await conn.fetchval(SERVER)
    held = {"server": server, "host": "h", "token": server, "sequence": "interlock.execution_id_seq", "now": None}
    plan = await explain("dispatch/direct", trains=["work", "other"], room=100, looks=100, **held)
    assert scans(plan) <= {
        ("work_queue", "work_queue_for_dispatch"),
        ("work_queue", "work_queue_for_ready"),
        ("work_queue", "work_queue_pkey"),
    }
    assert plan["Actual Rows"] == 100
    assert touched(plan) < 8_000
    plan = await explain("dispatch/take", ids=await candidates(conn, 100), **held)
    assert scans(plan) == {("work_queue", "work_queue_pkey")}
    assert touched(plan) < 6_000


async def claimed_to_submit(conn) -> dict[str, Any]:
    """One entry that a server is about to submit elsewhere."""
    server, [entry] = await conn.fetchval(SERVER), await candidates(conn, 1)
    claim = SQL["dispatch/claim_for_submit"]
    held = {"ids": [entry], "sequence": "interlock.execution_id_seq", "submitter": "s", "server": server}
    [row] = await claim.fetch(conn, **held, token=server, now=None)
    return {"execution": row["execution_id"], "entry": entry, "held": server}


async def test_what_finds_no_room_elsewhere_is_put_back_by_key(explain, conn):
    submitted = await claimed_to_submit(conn)
    plan = await explain("dispatch/put_back", token=submitted["held"])
    assert scans(plan) <= {
        ("execution", "execution_for_capacity"),
        ("execution", "Bitmap Heap Scan"),
        ("execution", "execution_pkey"),
        ("work_queue", "work_queue_pkey"),
    }
    assert plan["Actual Rows"] == 1
    assert touched(plan) < 150


async def test_a_failed_submit_is_queued_again_by_key(explain, conn):
    submitted = await claimed_to_submit(conn)
    plan = await explain(
        "dispatch/requeue",
        execution_id=submitted["execution"],
        entry_id=submitted["entry"],
        token=submitted["held"],
        error_type="E",
        error_message="e",
        delay="1 s",
        now=None,
    )
    assert scans(plan) == {("execution", "execution_pkey"), ("work_queue", "work_queue_pkey")}
    assert plan["Actual Rows"] == 1
    assert touched(plan) < 200


async def test_a_runner_takes_over_by_key(explain, conn):
    submitted = await claimed_to_submit(conn)
    held = submitted["held"]
    plan = await explain(
        "dispatch/take_over",
        id=submitted["execution"],
        train="work",
        submitted=held,
        server=held,
        host="h",
        token=held,
        now=None,
    )
    assert scans(plan) == {("execution", "execution_pkey"), ("work_queue", "work_queue_pkey")}
    assert plan["Actual Rows"] == 1
    assert touched(plan) < 100


MANY_LANES = f"""
INSERT INTO interlock.work_queue (kind, train, input, {COLUMNS}, group_id, group_priority, priority, ready)
SELECT 'adhoc', 'lane ' || n % 400, '{{}}', {POLICY}, 1, 0, 9, true FROM generate_series(1, 16000) n
"""


async def test_of_many_lanes_only_those_are_looked_into_whose_heads_come_first(explain, conn):
    await conn.execute(BY_KEY)
    await conn.execute(MANY_LANES)
    server = await conn.fetchval(SERVER)
    held = {"server": server, "host": "h", "token": server, "sequence": "interlock.execution_id_seq", "now": None}
    plan = await explain("dispatch/direct", trains=[f"lane {n}" for n in range(400)], room=10, looks=10, **held)
    assert plan["Actual Rows"] == 10
    into_lanes = [node for node in nodes(plan) if node["Node Type"] == "Limit" and node["Actual Loops"] > 1]
    assert sorted(node["Actual Loops"] for node in into_lanes) == [10, 10, 405]  # the last walks from lane to lane


async def test_what_was_dispatched_and_is_not_vacuumed_yet_is_passed_once_on_the_way_to_the_head(explain, conn):
    await conn.execute(BY_KEY)
    await conn.execute("UPDATE interlock.work_queue SET group_id = 1 WHERE ready")
    gone = await candidates(conn, 4000)
    await conn.execute(
        "UPDATE interlock.work_queue SET state = 'dispatched', left_at = now() WHERE id = ANY($1::bigint[])", gone
    )
    server = await conn.fetchval(SERVER)
    held = {"server": server, "host": "h", "token": server, "sequence": "interlock.execution_id_seq", "now": None}
    plan = await explain("dispatch/direct", trains=["work"], room=10, looks=10, **held)
    assert plan["Actual Rows"] == 10
    read = {
        "created_at >=" in node.get("Index Cond", ""): touched(node)
        for node in nodes(plan)
        if node.get("Index Name") == "work_queue_for_dispatch" and touched(node) > 10
    }
    assert read[False] > 300
    assert read.get(True, 0) < 100


async def test_counting_reads_the_active_alone(explain):
    plan = await explain("dispatch/count_active", excluded=["cleanup"])
    assert {table for table, _ in scans(plan)} <= {"execution", ""}
    assert {index for _, index in scans(plan)} <= {"execution_for_capacity", "Bitmap Heap Scan"}
    assert touched(plan) < 150


async def test_what_is_due_is_found_past_a_hundred_thousand_that_are_not(explain):
    plan = await explain("dispatch/ready", limit=1000, now=None)
    assert {index for _, index in scans(plan)} <= {"work_queue_for_ready", "work_queue_pkey"}
    assert touched(plan) < 50
    assert scans(await explain("dispatch/next_ready", now=None)) == {("work_queue", "work_queue_for_ready")}


async def test_a_handle_follows_its_work_by_two_indexes(explain):
    plan = await explain("work_queue/follow", id=17)
    assert scans(plan) == {
        ("work_queue", "work_queue_pkey"),
        ("work_queue", "work_queue_for_lineage"),
        ("execution", "execution_for_lineage"),
    }
    assert touched(plan) < 50


async def test_the_holder_of_a_key_is_found_by_its_index(explain):
    plan = await explain("work_queue/holders", keys=["a", "b"])
    assert {index for _, index in scans(plan)} <= {"work_queue_holds_key", "Bitmap Heap Scan"}


async def test_control_without_its_index_dispatch_reads_the_whole_queue(explain, conn):
    await conn.execute("DROP INDEX interlock.work_queue_for_dispatch")
    plan = await explain("dispatch/lanes", trains=["work"], count_waiting=False)
    assert scans(plan) != {("work_queue", "work_queue_for_dispatch")}
    assert touched(plan) > 200
