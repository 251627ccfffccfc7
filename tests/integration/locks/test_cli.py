"""`interlock locks` and `interlock timers`, on a database in which somebody holds something."""

from __future__ import annotations

import json

import asyncpg
import pytest
from click.testing import CliRunner

from interlock import Interlock, every
from interlock.cli.locks import command as locks
from interlock.cli.timers import command as timers
from interlock.errors import UnknownLockHolder
from tests.harness import databases


@pytest.fixture
def app(migrated) -> Interlock:
    return Interlock(migrated)


@pytest.fixture
def call(migrated):
    def run(group, *arguments: str):
        return CliRunner().invoke(group, [*arguments, "--dsn", migrated], obj={}, catch_exceptions=True)

    return run


def held(app: Interlock, name: str) -> None:
    async def hold() -> None:
        (await app.locks.atry_hold(name, slots=2)).abandon()
        await app.aclose()

    databases.run_blocking(hold())


def acts(dsn: str) -> list[tuple]:
    async def read() -> list[tuple]:
        conn = await asyncpg.connect(dsn)
        rows = await conn.fetch("SELECT actor, via, action, target, note FROM interlock.audit")
        await conn.close()
        return [tuple(row.values()) for row in rows]

    return databases.run_blocking(read())


def test_held_slots_are_listed_for_people_and_for_programs(app, call):
    assert call(locks, "list").exit_code == 0
    held(app, "report")
    assert "report" in call(locks, "list").stdout
    [record] = json.loads(call(locks, "list", "report", "--json").stdout)
    assert (record["name"], record["slots"]) == ("report", 2)
    assert record["expires_in_seconds"] > 0
    assert json.loads(call(locks, "list", "other", "--json").stdout) == []


def test_a_slot_is_taken_away_only_when_somebody_says_yes_and_the_audit_tells_of_it(app, call, migrated):
    held(app, "report")
    slot = str(json.loads(call(locks, "list", "--json").stdout)[0]["slot"])
    refused = call(locks, "release", "report", slot)
    assert (refused.exit_code, "add --yes to do it" in refused.output) == (2, True)
    assert "would take" in call(locks, "release", "report", slot, "--dry-run").stdout
    assert len(json.loads(call(locks, "list", "--json").stdout)) == 1
    assert "took slot" in call(locks, "release", "report", slot, "--yes", "--actor", "ada", "--note", "hangs").stdout
    assert acts(migrated) == [("ada", "cli", "release", "report", "hangs")]
    assert json.loads(call(locks, "list", "--json").stdout) == []
    assert isinstance(call(locks, "release", "report", slot, "--yes").exception, UnknownLockHolder)


def test_timers_are_listed_with_their_skips_and_who_runs_them(app, call):
    async def serve() -> None:
        async def nothing() -> None:
            return None

        app.add_timer("poll", nothing, every(hours=1), max_concurrency=2)
        async with app.running(["timers"]):
            pass

    assert "poll" not in call(timers, "list").stdout
    databases.run_blocking(serve())
    held(app, "timer:poll")
    assert "every hour" in call(timers, "list").stdout
    [record] = json.loads(call(timers, "list", "--json").stdout)
    assert (record["name"], record["max_concurrency"], record["runs"], record["skips"]) == ("poll", 2, 0, {})
    assert len(record["running"]) == 1
