from __future__ import annotations

import asyncio

import asyncpg
import psycopg
import pytest

from interlock import Interlock
from interlock.errors import SchemaAbsent, SchemaTooNew, SchemaTooOld
from interlock.store import migrate
from interlock.store.migrate import SchemaState, apply, check, code_version, missing_objects, script, status
from tests.harness.barrier import Barrier, armed

CATALOG = """
SELECT 'column' AS kind, c.relname AS owner, a.attname AS name,
       concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid),
                 a.attidentity, a.attgenerated, c.relkind, c.reloptions) AS definition
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (c.oid, a.attnum)
WHERE c.relnamespace = $1::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = $1::regnamespace
UNION ALL
SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = $1::regnamespace::text
ORDER BY 1, 2, 3, 4
"""


async def catalog(conn: asyncpg.Connection, schema: str) -> list[tuple[str, ...]]:
    """Every column, constraint and index of a schema, whatever the schema is called."""
    rows = await conn.fetch(CATALOG, schema)
    return [tuple(str(value).replace(f"{schema}.", "") for value in row) for row in rows]


@pytest.fixture
async def conn(database, connect):
    return await connect(database)


async def versions(conn: asyncpg.Connection, schema: str = "interlock") -> list[int]:
    return [row["version"] for row in await conn.fetch(f"SELECT version FROM {schema}.schema_version ORDER BY 1")]


async def pretend(conn: asyncpg.Connection, version: int, oldest_code: int) -> None:
    await apply(conn, "interlock")
    await conn.execute("INSERT INTO interlock.schema_version VALUES ($1, 'later', $2)", version, oldest_code)


def add_migration(monkeypatch, text: str) -> migrate.Migration:
    """From now on this code ships one more migration."""
    later = migrate.Migration(code_version() + 1, f"{code_version() + 1:04}_later", f"-- oldest-code: 1\n{text}")
    shipped = (*migrate.migrations(), later)
    monkeypatch.setattr(migrate, "migrations", lambda: shipped)
    return later


async def test_an_empty_database_is_brought_to_this_codes_version_and_a_second_time_changes_nothing(conn):
    first = await apply(conn, "interlock")
    before = await catalog(conn, "interlock")
    second = await apply(conn, "interlock")
    assert (first.before, first.after) == (0, code_version())
    assert (second.before, second.after) == (code_version(), code_version())
    assert await versions(conn) == list(range(1, code_version() + 1))
    assert await catalog(conn, "interlock") == before
    assert await missing_objects(conn, "interlock") == []


async def test_two_schemas_live_side_by_side_with_the_same_objects(conn):
    await apply(conn, "tenant_a")
    assert (await status(conn, "tenant_b")).state is SchemaState.ABSENT
    await apply(conn, "tenant_b")
    assert await catalog(conn, "tenant_a") == await catalog(conn, "tenant_b") != []
    await conn.execute("DROP SCHEMA tenant_a CASCADE")
    assert (await check(conn, "tenant_b")).state is SchemaState.CURRENT
    assert await conn.fetchval("SELECT to_regnamespace('interlock')") is None


async def test_a_failed_migration_leaves_nothing_behind(conn, monkeypatch):
    add_migration(monkeypatch, "create table /*schema*/late (a integer);\nselect 1/0;")
    with pytest.raises(asyncpg.DivisionByZeroError):
        await apply(conn, "interlock")
    assert (await status(conn, "interlock")).state is SchemaState.ABSENT
    assert await conn.fetchval("SELECT to_regnamespace('interlock')") is None


async def test_only_what_is_missing_is_applied(conn, monkeypatch):
    await apply(conn, "interlock")
    later = add_migration(monkeypatch, "create table /*schema*/late (a integer);")
    with pytest.raises(
        SchemaTooOld, match=f"is at version {later.version - 1}, this code needs {later.version}; run: "
    ):
        await check(conn, "interlock")
    assert (await apply(conn, "interlock")).before == later.version - 1
    assert await versions(conn) == list(range(1, later.version + 1))
    assert (await check(conn, "interlock")).state is SchemaState.CURRENT


async def test_an_absent_schema_says_what_to_run(conn):
    with pytest.raises(SchemaAbsent, match="has no schema 'interlock'; run: interlock schema apply"):
        await check(conn, "interlock")


async def test_a_schema_without_any_row_counts_as_absent_and_can_be_applied(conn):
    await conn.execute(script("interlock").partition("-- 0001")[0])
    assert (await status(conn, "interlock")).state is SchemaState.ABSENT
    assert (await apply(conn, "interlock")).after == code_version()


async def test_a_newer_schema_that_still_serves_this_code_is_used_and_left_alone(conn):
    await pretend(conn, 999, oldest_code=1)
    assert (await check(conn, "interlock")).state is SchemaState.NEWER
    applied = await apply(conn, "interlock")
    assert (applied.before, applied.after) == (999, 999)


async def test_a_schema_that_is_too_new_is_refused_by_check_and_by_apply(conn):
    await pretend(conn, 999, oldest_code=999)
    assert (await status(conn, "interlock")).state is SchemaState.TOO_NEW
    for refuse in (check, apply):
        with pytest.raises(SchemaTooNew, match=r"serves code from version 999 on, .* install a newer interlock"):
            await refuse(conn, "interlock")


async def test_the_script_run_by_another_driver_in_one_transaction_makes_the_same_schema(conn, database):
    await apply(conn, "ours")
    with psycopg.connect(database) as other, other.transaction():
        other.execute(script("theirs"))
    assert await catalog(conn, "theirs") == await catalog(conn, "ours")
    assert (await check(conn, "theirs")).state is SchemaState.CURRENT
    assert await versions(conn, "theirs") == await versions(conn, "ours")


async def test_control_the_comparison_sees_a_column_a_constraint_and_an_index(conn):
    await apply(conn, "ours")
    before = await catalog(conn, "ours")
    for change in (
        "ALTER TABLE ours.server ALTER app SET DEFAULT 'x'",
        "ALTER TABLE ours.server ADD CHECK (pid > 0)",
        "DROP INDEX ours.server_for_retention",
    ):
        await conn.execute(change)
        before, after = await catalog(conn, "ours"), before
        assert before != after


async def test_a_dropped_index_is_named_as_missing(conn):
    await apply(conn, "interlock")
    await conn.execute("DROP INDEX interlock.server_for_recovery")
    assert await missing_objects(conn, "interlock") == ["server_for_recovery"]
    await conn.execute("DROP TABLE interlock.server CASCADE")
    assert {"server", "server_for_recovery", "server_for_retention"} <= set(await missing_objects(conn, "interlock"))


async def test_an_invalid_index_is_named_as_missing(conn):
    await apply(conn, "interlock")
    await conn.execute(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'interlock.server_for_recovery'::regclass"
    )
    assert await missing_objects(conn, "interlock") == ["server_for_recovery"]


async def test_a_role_that_may_only_read_can_ask_for_the_status(conn):
    await apply(conn, "interlock")
    role = f"reader_{await conn.fetchval('SELECT pg_backend_pid()')}"
    await conn.execute(f"CREATE ROLE {role}; GRANT USAGE ON SCHEMA interlock TO {role}")
    await conn.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA interlock TO {role}")
    try:
        await conn.execute(f"SET ROLE {role}")
        assert (await check(conn, "interlock")).state is SchemaState.CURRENT
        assert await missing_objects(conn, "interlock") == []
        assert (await apply(conn, "interlock")).after == code_version()
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await conn.execute("DELETE FROM interlock.server")
    finally:
        await conn.execute(f"RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")


async def test_a_migration_may_take_longer_than_other_commands(database, monkeypatch):
    add_migration(monkeypatch, "select pg_sleep(1);")
    conn = await asyncpg.connect(database, command_timeout=0.5)
    try:
        assert (await apply(conn, "interlock")).after == code_version()
    finally:
        await conn.close()


async def test_who_comes_later_waits_for_longer_than_a_command_may_take(conn, database):
    waiting = await asyncpg.connect(database, command_timeout=0.5)
    try:
        async with conn.transaction():
            await conn.execute("SELECT pg_advisory_xact_lock(hashtextextended('interlock migrations of interlock', 0))")
            applying = asyncio.create_task(apply(waiting, "interlock"))
            done, _ = await asyncio.wait({applying}, timeout=1.5)
            assert not done
        assert (await applying).after == code_version()
    finally:
        await waiting.close()


async def test_who_has_nothing_to_apply_waits_for_nobody(conn, connect, database):
    await apply(conn, "interlock")
    other = await connect(database)
    async with other.transaction():
        await other.execute("SELECT pg_advisory_xact_lock(hashtextextended('interlock migrations of interlock', 0))")
        assert (await apply(conn, "interlock")).before == code_version()


STANDS_STILL = """
    import asyncio, sys
    import asyncpg
    from interlock.store import migrate

    async def main():
        migrate._STANDSTILL = sys.argv[2]
        await migrate.apply(await asyncpg.connect(sys.argv[1]), "interlock")

    asyncio.run(main())
"""


async def applied_beside_one_that_stands_still(conn, database, fleet, folder, limit: str, patience: float) -> bool:
    barrier = Barrier(folder, "migrate.before_script")
    process = fleet.start(STANDS_STILL, database, limit, env=armed(barrier))
    await barrier.reached()
    process.stop()
    try:
        async with asyncio.timeout(patience):
            return (await apply(conn, "interlock")).before == 0
    except TimeoutError:
        return False


async def test_a_migrating_process_that_stands_still_keeps_nobody_from_starting(conn, database, fleet, tmp_path):
    assert await applied_beside_one_that_stands_still(conn, database, fleet, tmp_path, "1s", 60)


async def test_control_without_a_limit_nobody_starts_beside_one_that_stands_still(conn, database, fleet, tmp_path):
    assert not await applied_beside_one_that_stands_still(conn, database, fleet, tmp_path, "0", 3)


def test_an_app_applies_the_schema_in_code_without_an_event_loop_too(database):
    app = Interlock(database)
    assert (app.apply_schema().after, app.apply_schema().before) == (code_version(), code_version())
    with app:
        assert app.servers() == []
