"""Every finding of the doctor, created on a real database; and nothing found where nothing is wrong."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import asyncpg
import pytest

from interlock import Interlock
from interlock.dispatch.settings import DispatchSettings
from interlock.operate import doctor
from interlock.operate.doctor_database import check_clock, check_pooler, check_version
from interlock.operate.doctor_fleet import BESIDE_THE_POOL
from interlock.operate.doctor_settings import check_settings
from interlock.runtime.settings import RuntimeSettings
from interlock.settings import Settings
from interlock.store.checkup import Checkup
from interlock.store.database import Database
from interlock.store.settings import StoreSettings
from interlock.upkeep.settings import UpkeepSettings
from tests.harness.databases import with_database
from tests.harness.waiting import eventually

SERVER = """
INSERT INTO interlock.server (id, name, roles, trains, tags, slots, host, pid, version, lease, lease_until, renewed_at,
    steady_since, started_at)
VALUES (gen_random_uuid(), $1, '{worker}', '{}', '{}', 1, 'h', 1, $2, interval '10 s', now() + $3::interval, now(),
    now(), now())
"""


@pytest.fixture
async def conn(migrated):
    conn = await asyncpg.connect(migrated)
    yield conn
    await conn.close()


@pytest.fixture
async def app(migrated):
    app = Interlock(migrated)
    yield app
    await app.aclose()


async def checks(app: Interlock) -> list[str]:
    return [finding.check for finding in await app.adoctor()]


async def test_a_healthy_database_has_no_findings(app, conn):
    await conn.execute(SERVER, "s", "0.1.0", timedelta(hours=1))
    assert await app.adoctor() == []


async def test_an_absent_an_old_and_a_new_schema_are_findings_with_the_command(database, app, conn):
    bare = Interlock(database)
    try:
        (finding,) = await bare.adoctor()
        assert (finding.check, finding.command) == ("schema", "interlock schema apply")
    finally:
        await bare.aclose()
    await conn.execute("INSERT INTO interlock.schema_version VALUES (99, 'x', 1)")
    assert await checks(app) == ["schema"]
    await conn.execute("DELETE FROM interlock.schema_version WHERE version > 1")
    (finding,) = await app.adoctor()
    assert (finding.check, finding.command) == ("schema", "interlock schema apply")


async def test_a_missing_and_an_invalid_index_are_named(app, conn):
    await conn.execute("DROP INDEX interlock.work_queue_for_dispatch")
    await conn.execute(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'interlock.execution_for_capacity'::regclass"
    )
    (finding,) = await app.adoctor()
    assert finding.check == "missing"
    assert "execution_for_capacity, work_queue_for_dispatch" in finding.found


async def test_missing_privileges_come_with_the_grant_and_the_grants_are_enough(migrated, conn):
    role = f"poor_{uuid4().hex[:12]}"
    await conn.execute(f"CREATE ROLE {role}; GRANT {role} TO current_user")
    poor = Interlock(f"{migrated}?role={role}")
    try:
        findings = await poor.adoctor()
        assert {finding.check for finding in findings} == {"privileges"}
        assert f"grant usage on schema interlock to {role}" in [finding.command for finding in findings]
        for finding in findings:
            await conn.execute(finding.command)
        assert await poor.adoctor() == []
        await conn.execute(f"REVOKE DELETE ON interlock.work_queue FROM {role}")
        (finding,) = await poor.adoctor()
        assert finding.command == f"grant delete on table interlock.work_queue to {role}"
    finally:
        await poor.aclose()
        await conn.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


async def test_dead_rows_of_a_hot_table_are_counted(app, conn):
    await conn.execute("ALTER TABLE interlock.background_job SET (autovacuum_enabled = off)")
    await conn.execute(
        "INSERT INTO interlock.background_job SELECT n, 't', 0, 0, now(), n FROM generate_series(1, 12000) n"
    )
    await conn.execute("DELETE FROM interlock.background_job")
    await conn.close()  # what a connection has done reaches the statistics at its end at the latest
    await eventually(lambda: checks_are(app, ["bloat"]), 60, "the statistics")
    (finding,) = await app.adoctor()
    assert finding.command == "vacuum (analyze) interlock.background_job"


async def checks_are(app: Interlock, expected: list[str]) -> bool:
    return await checks(app) == expected


async def test_a_transaction_that_is_open_for_long_is_named_with_the_statement_that_ends_it(app, conn):
    async with conn.transaction():
        await conn.execute("SELECT 1")
        database = await app.adatabase()
        assert await doctor.examine(database, app.settings) == []
        found = await doctor.look(database, old=timedelta(0))
    mine = [old for old in found.transactions if old.what == f"backend {conn.get_server_pid()}"]
    assert [old.state for old in mine] == ["idle in transaction"]
    assert mine[0].remedy == f"select pg_terminate_backend({conn.get_server_pid()})"
    text = [f.found for f in doctor.check_database(found, app.settings.store) if f.check == "long_transaction"]
    assert any(f"backend {conn.get_server_pid()}" in line for line in text)


class BehindAPooler(Database):
    """LISTEN lands on a server connection where nobody's notices arrive."""

    async def connect(self, purpose: str):
        if purpose != "listener":
            return await super().connect(purpose)
        dsn, self.dsn = self.dsn, with_database(self.dsn, "postgres")
        try:
            return await super().connect(purpose)
        finally:
            self.dsn = dsn


@pytest.mark.parametrize(("cache", "expected"), [(None, ["notices", "prepared_statements"]), (0, ["notices"])])
async def test_behind_a_transaction_pooler_notices_and_prepared_statements_are_findings(migrated, cache, expected):
    settings = Settings(store=StoreSettings(statement_cache_size=cache))
    database = BehindAPooler(migrated, settings.store)
    try:
        assert [finding.check for finding in await doctor.examine(database, settings)] == expected
        found = await doctor.look(database)
    finally:
        await database.close()
    assert not found.pooled
    (first, *_) = check_pooler(replace(found, pooled=True), settings.store)
    assert "a pooler stands in between, and" in first.found


async def test_a_clock_that_is_off_is_told_in_its_direction(app, conn):
    checkup = Checkup((await app.adatabase()).sql)
    found = await doctor.look(await app.adatabase())
    assert list(check_clock(found)) == []
    for shift, word in ((3600, "1 h ahead of"), (-60, "behind")):
        skew = await checkup.skew(conn, wall=lambda shift=shift: time.time() + shift)
        (finding,) = check_clock(replace(found, skew=skew))
        assert word in finding.found


async def test_a_postgresql_that_is_too_old_read_only_or_without_autovacuum_is_a_finding(app):
    found = await doctor.look(await app.adatabase())
    assert list(check_version(found)) == []
    bad = replace(found.instance, version=130004, version_text="13.4", read_only=True, autovacuum=False)
    assert [f.check for f in check_version(replace(found, instance=bad))] == ["version", "read_only", "autovacuum"]


async def test_a_standby_or_a_read_only_role_is_noticed(migrated):
    app = Interlock(f"{migrated}?default_transaction_read_only=on")
    try:
        assert await checks(app) == ["read_only"]
    finally:
        await app.aclose()


async def test_silent_servers_differing_versions_and_too_many_connections_are_findings(app, conn):
    await conn.execute(SERVER, "a", "0.1.0", timedelta(hours=1))
    await conn.execute(SERVER, "b", "0.2.0", timedelta(hours=1))
    await conn.execute(SERVER, "c", "0.1.0", -timedelta(minutes=1))
    silent, versions = await app.adoctor()
    assert (silent.check, versions.check) == ("silent_server", "versions")
    assert silent.found.startswith("c has not renewed")
    assert "0.1.0, 0.2.0" in versions.found
    many = Interlock(app.settings.store.dsn, pool_size=10_000)
    try:
        assert "connections" in await checks(many)
    finally:
        await many.aclose()


BESIDE = "SELECT array_agg(DISTINCT application_name) FROM pg_stat_activity WHERE datname = current_database()"
LINES = {"keeper", "listener", "dispatch", "worker claim", "worker settle", "outbox claim", "outbox settle"}


async def test_what_a_server_opens_beside_its_pool_is_what_is_counted(migrated, conn):
    app = Interlock(migrated)
    app.train(noop)
    app.outbox.emitter("*")(deliver)

    async def all_open() -> bool:
        return {f"interlock {line}" for line in LINES} <= set(await conn.fetchval(BESIDE))

    async with app.running():
        await (await app.trains.get("noop").aenqueue()).aresult(timeout=60)
        await app.outbox.apublish(conn, "order.paid", {})
        await eventually(all_open, what="every line of a server")
        names = {
            name.removeprefix("interlock ") for name in await conn.fetchval(BESIDE) if name.startswith("interlock ")
        }
    assert names - {"tick", "transaction"} <= LINES
    assert len(LINES) == BESIDE_THE_POOL


async def noop() -> None: ...


async def deliver(message) -> None: ...


async def test_holders_that_disagree_on_the_slots_of_a_lock_are_a_finding(app):
    async with app.locks.hold("report", 2), app.locks.hold("report", 3):
        (finding,) = await app.adoctor()
    assert finding.check == "slots_disagree"
    assert "report for 2 and for 3 slots" in finding.found.replace("take it for", "for")


async def test_jobs_without_executions_and_executions_without_jobs_are_found(app, conn):
    await conn.execute("INSERT INTO interlock.background_job VALUES (1, 't', 0, 0, now(), 1)")
    await conn.execute(
        "INSERT INTO interlock.execution (entry_id, first_entry_id, kind, train, input, group_id, attempt, crashes,"
        " max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, created_at)"
        " SELECT 9, 9, 'adhoc', 't', '{}', 1, 1, 0, 1, 1, '1 s', '1 s', 1, now() - interval '2 minutes'"
        " FROM generate_series(1, 2)"
    )
    ids = [row[0] for row in await conn.fetch("SELECT id FROM interlock.execution ORDER BY id")]
    await conn.execute("UPDATE interlock.background_job SET execution_id = $1", ids[0])
    (finding,) = await app.adoctor()
    assert (finding.check, finding.found[0]) == ("orphaned_executions", "1")
    await conn.execute("UPDATE interlock.background_job SET execution_id = 999999")
    assert await checks(app) == ["orphaned_jobs", "orphaned_executions"]


def test_settings_that_contradict_each_other_are_findings_even_if_nobody_refused_them():
    assert list(check_settings(Settings())) == []
    assert list(check_settings(Settings(dispatch=DispatchSettings(max_active_jobs=20)))) == [], "an ordinary cap"
    short = RuntimeSettings(lease=timedelta(seconds=3), heartbeat=timedelta(seconds=1))
    assert list(check_settings(Settings(runtime=short))) == [], "a lease as long as the default tick_idle_timeout"
    wrong = Settings(
        dispatch=DispatchSettings(max_concurrent_dispatch=10, max_active_jobs=3),
        runtime=RuntimeSettings(lease=timedelta(seconds=2)),
        upkeep=UpkeepSettings(execution_retention=timedelta(minutes=1)),
    )
    assert [finding.check for finding in check_settings(wrong)] == [
        "dispatch_concurrency",
        "heartbeat",
        "tick_idle_timeout",
        "retention",
    ]


def test_the_command_exits_5_on_findings_0_without_and_1_without_a_database(interlock, migrated, database):
    well = interlock("doctor", "--dsn", migrated, "--json")
    assert (well.returncode, json.loads(well.stdout)) == (0, []), well.stderr
    ill = interlock("doctor", "--dsn", database, "--json")
    assert ill.returncode == 5, ill.stderr
    (finding,) = json.loads(ill.stdout)
    assert finding["check"] == "schema"
    assert finding["command"].startswith("interlock --dsn ")  # the same database, its password masked
    assert finding["command"].endswith(" schema apply")
    text = interlock("doctor", "--dsn", database)
    assert text.stdout.splitlines()[0] == "schema: there is no schema interlock"
    away = interlock("doctor", "--dsn", "postgresql://ada:hunter2@127.0.0.1:1/shop")
    assert (away.returncode, away.stdout) == (1, "")
    assert "hunter2" not in away.stderr
