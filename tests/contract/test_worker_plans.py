"""Claim, settle, recovery, reapers and cancellation read through their indexes, however much lies beside.

Each statement is planned as its caller plans it: on a line that looks up by key, in a transaction that joins by index.
As in the plans of the dispatcher, the statistics may be those of empty tables, and the plan may be one for any values.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import asyncpg
import pytest

from interlock.store.sql import Catalog
from tests.contract.test_dispatch_plans import COLUMNS, FUTURE, POLICY, literal, nodes, touched
from tests.harness import databases

if TYPE_CHECKING:
    from collections.abc import Iterator

SQL = Catalog("interlock")
LARGE = {"work_queue", "execution"}
SERVER, LOST, TOKEN = uuid4(), uuid4(), uuid4()
JOBS = 200
MANIFESTS = 1000
MANIFEST = f"""
INSERT INTO interlock.manifest (external_id, origin, train, input, group_id, schedule_kind, schedule, misfire,
    misfire_threshold, parent_id, planned_at)
SELECT 'm' || n, 'runtime', 'work', '{{}}', 1, CASE WHEN n % 2 = 0 THEN 'dependent' ELSE 'every' END, '{{}}',
    'fire_once', '1 min', CASE WHEN n % 2 = 0 THEN n - 1 END, now()
FROM generate_series(1, {MANIFESTS}) n
"""
HISTORY = f"""
INSERT INTO interlock.execution (state, entry_id, first_entry_id, kind, manifest_id, train, input, group_id, crashes,
    {COLUMNS}, created_at, ended_at)
SELECT 'completed', -n, -n, CASE WHEN n % 4 = 0 THEN 'scheduled' ELSE 'adhoc' END,
    CASE WHEN n % 4 = 0 THEN 1 + n / 4 % {MANIFESTS} END, 'work', '{{}}', 1, 0, {POLICY},
    now() - interval '2 d', now() - interval '1 d'
FROM generate_series(1, $1) n
"""
SERVERS = """
INSERT INTO interlock.server (id, name, roles, trains, tags, slots, host, pid, version, state, lease, lease_until,
    renewed_at, steady_since, started_at, ended_at)
SELECT id, 's', '{}', '{}', '{}', 1, 'h', 1, '0', state, '10 s', now(), now(), now(), now(),
    CASE state WHEN 'lost' THEN now() END
FROM (VALUES ($1::uuid, 'alive'), ($2::uuid, 'lost')) AS s (id, state)
"""
DISPATCHED = f"""
WITH entry AS (
    INSERT INTO interlock.work_queue (state, kind, manifest_id, fire_key, train, input, {COLUMNS}, group_id,
        group_priority, priority, ready, left_at, key, key_held)
    SELECT 'dispatched', CASE WHEN n % 2 = 0 THEN 'scheduled' ELSE 'adhoc' END, CASE WHEN n % 2 = 0 THEN n END,
        CASE WHEN n % 2 = 0 THEN $1 || n END, 'work', '{{}}', {POLICY}, 1, 0, 9, true, now(),
        CASE WHEN n % 2 = 1 THEN $1 || n END, n % 2 = 1
    FROM generate_series(1, {JOBS}) n
    RETURNING *
)
INSERT INTO interlock.execution (entry_id, first_entry_id, kind, manifest_id, fire_key, train, input, group_id, crashes,
    {COLUMNS})
SELECT id, id, kind, manifest_id, fire_key, train, input, group_id, 0, {COLUMNS} FROM entry RETURNING id
"""
WAITING = """
INSERT INTO interlock.background_job (execution_id, train, group_priority, priority, created_at, entry_id)
SELECT id, train, 0, 9, created_at, entry_id FROM interlock.execution WHERE id = ANY($1)
"""
RUNNING = """
UPDATE interlock.execution SET state = 'in_progress', server_id = $2, claim_token = $3, started_at = now(), host = 'h'
WHERE id = ANY($1)
"""
ASKED_TO_STOP = """
UPDATE interlock.execution SET timeout = '1 s', cancel_requested_at = now(), cancel_cause = 'timeout' WHERE id = ANY($1)
"""
SCALES = [
    pytest.param((60_000, 10_000), id="reduced"),
    pytest.param((1_000_000, 100_000), id="full", marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
]


@pytest.fixture(scope="module", params=SCALES)
def populated(request, postgres_dsn) -> Iterator[tuple[str, list[int]]]:
    dsn = databases.create_migrated(postgres_dsn)
    held = databases.run_blocking(populate(dsn, *request.param))
    yield dsn, held
    databases.drop(postgres_dsn, dsn)


async def populate(dsn: str, history: int, future: int) -> list[int]:
    """Answers the executions that the lost server holds."""
    conn = await asyncpg.connect(dsn, command_timeout=600)
    try:
        for table in (*LARGE, "background_job", "manifest"):
            await conn.execute(f"ALTER TABLE interlock.{table} SET (autovacuum_enabled = false)")
        await conn.execute("VACUUM ANALYZE")
        await conn.execute("INSERT INTO interlock.manifest_group (name) SELECT 'g' || n FROM generate_series(2, 5) n")
        await conn.execute(MANIFEST)
        await conn.execute(HISTORY, history)
        await conn.execute(FUTURE, future)
        await conn.execute(SERVERS, SERVER, LOST)
        await conn.execute(WAITING, [row[0] for row in await conn.fetch(DISPATCHED, "waiting")])
        held = [row[0] for row in await conn.fetch(DISPATCHED, "held")]
        await conn.execute(RUNNING, held, LOST, TOKEN)
        return held
    finally:
        await conn.close()


@pytest.fixture(params=["analyzed when empty", "analyzed when full"])
async def conn(request, populated):
    conn = await asyncpg.connect(populated[0], statement_cache_size=0)
    transaction = conn.transaction()
    await transaction.start()
    if request.param == "analyzed when full":
        await conn.execute("ANALYZE")
    yield conn
    await transaction.rollback()
    await conn.close()


@pytest.fixture(params=["force_generic_plan", "force_custom_plan"])
async def explain(request, conn):
    await conn.execute(f"SET LOCAL plan_cache_mode = {request.param}")

    async def explain(name: str, **values: Any) -> dict[str, Any]:
        statement = SQL[name]
        await conn.execute("DEALLOCATE ALL")
        await conn.execute(f"PREPARE looked_at AS {statement.asyncpg}")
        arguments = ", ".join(literal(value) for value in statement.arguments(values))
        call = f"looked_at({arguments})" if arguments else "looked_at"
        text = await conn.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {call}")
        return json.loads(text)[0]["Plan"]

    return explain


@pytest.fixture
async def by_key(conn):
    await SQL["session/by_key"].execute(conn, idle_timeout="60000")


@pytest.fixture
async def by_index(conn):
    await SQL["session/join_by_index"].execute(conn, statement_timeout="60000", idle_timeout="60000")


def read_whole(plan: dict[str, Any]) -> set[str]:
    """The large tables that were read from end to end, by heap or by an index that selects nothing."""
    return {
        node["Relation Name"]
        for node in nodes(plan)
        if node.get("Relation Name") in LARGE
        and (
            node["Node Type"] == "Seq Scan" or node.get("Rows Removed by Filter", 0) * node["Actual Loops"] > 10 * JOBS
        )
    }


def endings(ids: list[int], state: str) -> dict[str, Any]:
    count, failed = len(ids), state == "failed"
    nothing = [None] * count
    return {
        "ids": ids,
        "tokens": [TOKEN] * count,
        "states": [state] * count,
        "outputs": nothing if failed else ["1"] * count,
        "failures": ["error"] * count if failed else nothing,
        "error_types": nothing,
        "error_messages": nothing,
        "tracebacks": nothing,
        "junctions": nothing,
        "retry_afters": nothing,
        "now": None,
    }


@pytest.mark.usefixtures("by_key")
async def test_a_claim_touches_what_it_claims(explain):
    plan = await explain(
        "background_job/claim", trains=["work"], server=SERVER, limit=100, host="h", token=uuid4(), now=None
    )
    assert (plan["Actual Rows"], read_whole(plan)) == (100, set())
    assert touched(plan) < 100 * 60


@pytest.mark.usefixtures("by_key")
async def test_plain_successes_are_settled_by_key(explain, populated):
    ids = populated[1][:100]
    plan = await explain("execution/complete", ids=ids, tokens=[TOKEN] * 100, outputs=["1"] * 100, now=None)
    assert (plan["Actual Rows"], read_whole(plan)) == (100, set())
    assert touched(plan) < 100 * 40


@pytest.mark.usefixtures("by_key")
@pytest.mark.parametrize("state", ["completed", "failed"])
async def test_all_other_ends_and_what_follows_are_written_by_key(explain, populated, state):
    """Half of them belong to manifests, the others hold keys; those that failed are queued again."""
    ids = populated[1]
    plans = [await explain("execution/lock_entries", ids=ids), await explain("execution/end", **endings(ids, state))]
    manifests = [n for n in range(1, JOBS + 1) if n % 2 == 0]
    plans.append(await explain("execution/lock_manifests", ids=manifests, succeeded=manifests))
    plans.append(await explain("execution/unblock", ids=manifests, now=None))
    assert plans[1]["Actual Rows"] == JOBS
    assert [read_whole(plan) for plan in plans] == [set()] * 4
    assert sum(touched(plan) for plan in plans) < JOBS * 250


@pytest.mark.usefixtures("by_index")
async def test_recovery_reads_the_active_alone(explain):
    plan = await explain("execution/lost", within="1 minute", limit=500)
    assert (plan["Actual Rows"], read_whole(plan)) == (JOBS, set())
    assert touched(plan) < JOBS * 30


@pytest.mark.parametrize("state", ["pending", "in_progress"])
async def test_the_reapers_find_what_is_stale_among_the_active_alone(explain, conn, state):
    """Handed over to nobody, or begun by a server that is lost."""
    await conn.execute("DELETE FROM interlock.background_job")
    plan = await explain("manifest/list_stale", state=state, longer_than="0 s", now=None)
    assert (plan["Actual Rows"], read_whole(plan)) == (JOBS, set())
    assert touched(plan) < JOBS * 30


async def test_the_reapers_find_what_heeds_no_timeout_among_the_active_alone(explain, conn, populated):
    await conn.execute(ASKED_TO_STOP, populated[1])
    plan = await explain("manifest/list_unheeded_timeouts", grace="0 s", now="2100-01-01")
    assert (plan["Actual Rows"], read_whole(plan)) == (JOBS, set())
    assert touched(plan) < JOBS * 30


@pytest.mark.parametrize("scope", ["lineage", "manifest_id", "group_id"])
async def test_cancelling_reads_the_active_alone(explain, conn, populated, scope):
    column = {"lineage": "first_entry_id"}.get(scope, scope)
    value = await conn.fetchval(
        f"SELECT {column} FROM interlock.execution WHERE id = ANY($1) AND {column} IS NOT NULL LIMIT 1", populated[1]
    )
    nobody = dict.fromkeys(("lineage", "manifest_id", "group_id"))
    plan = await explain("execution/request_cancel", actor="ada", now=None, **{**nobody, scope: value})
    assert plan["Actual Rows"] >= 1
    assert read_whole(plan) == set()


async def test_whether_a_group_is_used_is_asked_of_the_active_alone(explain):
    assert "execution" not in read_whole(await explain("manifest_group/forget"))


async def test_an_edited_manifest_asks_for_its_active_runs_alone(explain):
    ids = list(range(1, 101))
    assert "execution" not in read_whole(await explain("declaration/mark", ids=ids))
    assert "execution" not in read_whole(await explain("declaration/prune", ids=ids))


@pytest.mark.usefixtures("by_index")
async def test_control_without_its_index_recovery_reads_the_history(explain, conn):
    await conn.execute("DROP INDEX interlock.execution_for_capacity")
    plan = await explain("execution/lost", within="1 minute", limit=500)
    assert read_whole(plan) == {"execution"} or touched(plan) > JOBS * 30


async def test_control_without_its_index_the_reapers_read_the_history(explain, conn):
    await conn.execute("DROP INDEX interlock.execution_for_capacity, interlock.execution_for_active_manifest")
    plan = await explain("manifest/list_stale", state="in_progress", longer_than="0 s", now=None)
    assert read_whole(plan) == {"execution"}
    plan = await explain("manifest/list_unheeded_timeouts", grace="0 s", now=None)
    assert read_whole(plan) == {"execution"}


@pytest.mark.usefixtures("by_key")
async def test_control_without_its_index_a_settle_reads_all_runs_of_the_manifest(explain, conn):
    for index in ("execution_for_active_manifest", "execution_for_manifest", "execution_for_capacity"):
        await conn.execute(f"DROP INDEX interlock.{index}")
    await conn.execute("UPDATE interlock.manifest SET next_run_at = NULL")
    plan = await explain("execution/unblock", ids=list(range(JOBS + 1, JOBS + 11)), now=None)
    assert read_whole(plan) == {"execution"}
