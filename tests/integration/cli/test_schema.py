from __future__ import annotations

import json
import re

import psycopg
import pytest

from interlock.store.migrate import code_version
from tests.harness import databases

NEEDED = code_version()
LATER = NEEDED + 1


@pytest.fixture
def too_old(migrated) -> str:
    databases.execute(migrated, f"DELETE FROM interlock.schema_version WHERE version = {NEEDED}")
    return migrated


@pytest.fixture
def too_new(migrated) -> str:
    databases.execute(migrated, f"INSERT INTO interlock.schema_version VALUES ({LATER}, 'later', {LATER})")
    return migrated


@pytest.fixture
def newer(migrated) -> str:
    databases.execute(migrated, f"INSERT INTO interlock.schema_version VALUES ({LATER}, 'later', {NEEDED})")
    return migrated


@pytest.mark.parametrize(
    ("world", "state"),
    [
        ("database", "absent"),
        ("too_old", "too_old"),
        ("migrated", "current"),
        ("newer", "newer"),
        ("too_new", "too_new"),
    ],
)
def test_status_tells_the_state_and_leaves_the_judgement_to_check(interlock, request, world, state):
    dsn = request.getfixturevalue(world)
    done = interlock("schema", "status", "--json", "--dsn", dsn)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["schema"], found["state"], found["needed"]) == ("interlock", state, NEEDED)
    assert interlock("schema", "status", "--dsn", dsn).stdout.startswith("schema interlock: version ")


@pytest.mark.parametrize(
    ("world", "words"),
    [
        ("database", r"the database has no schema 'interlock'; run: interlock --dsn \S+ schema apply"),
        ("too_old", rf"this code needs {NEEDED}; run: interlock --dsn \S+ schema apply"),
        ("too_new", "install a newer interlock"),
    ],
)
def test_check_exits_4_when_this_code_must_not_use_the_schema_and_says_what_helps(refused, request, world, words):
    dsn = request.getfixturevalue(world)
    assert re.search(words, refused(4, "schema", "check", "--dsn", dsn))


def test_check_tells_a_program_the_state_even_when_it_refuses(interlock, too_new):
    done = interlock("schema", "check", "--json", "--dsn", too_new)
    assert done.returncode == 4
    assert (json.loads(done.stdout)["state"], json.loads(done.stdout)["found"]) == ("too_new", LATER)
    assert "install a newer interlock" in done.stderr


@pytest.mark.parametrize("world", ["migrated", "newer"])
def test_check_exits_0_when_this_code_may_use_the_schema(interlock, request, world):
    done = interlock("schema", "check", "--dsn", request.getfixturevalue(world))
    assert (done.returncode, done.stderr) == (0, "")
    assert "is fit for use" in done.stdout


def test_check_exits_5_and_names_what_is_missing(interlock, migrated):
    databases.execute(migrated, "DROP INDEX interlock.server_for_recovery")
    done = interlock("schema", "check", "--dsn", migrated)
    assert done.returncode == 5
    assert "missing or invalid: interlock.server_for_recovery" in done.stdout
    as_json = interlock("schema", "check", "--json", "--dsn", migrated)
    assert (as_json.returncode, json.loads(as_json.stdout)["missing"]) == (5, ["server_for_recovery"])


def test_apply_makes_the_schema_once_and_says_so(interlock, database):
    first = interlock("schema", "apply", "--dsn", database)
    second = interlock("schema", "apply", "--json", "--dsn", database)
    assert (first.returncode, second.returncode) == (0, 0)
    assert first.stdout == f"applied, from version 0 to {NEEDED}\n"
    assert json.loads(second.stdout) == {"before": NEEDED, "after": NEEDED}
    assert interlock("schema", "check", "--dsn", database).returncode == 0


def test_apply_refuses_a_schema_that_is_too_new(refused, too_new):
    assert "install a newer interlock" in refused(4, "schema", "apply", "--dsn", too_new)


@pytest.mark.parametrize("schema", ["interlock", "tenant_7"])
def test_the_printed_sql_run_by_another_program_gives_a_schema_that_is_fit_for_use(interlock, database, schema):
    printed = interlock("schema", "sql", "--schema", schema)
    assert (printed.returncode, printed.stderr) == (0, "")
    with psycopg.connect(database) as other:
        other.execute(printed.stdout)
    done = interlock("schema", "check", "--json", "--dsn", database, "--schema", schema)
    assert (done.returncode, json.loads(done.stdout)["state"]) == (0, "current")


def test_the_printed_sql_after_a_version_brings_an_older_schema_up_to_date(interlock, database):
    whole = interlock("schema", "sql").stdout
    rest = interlock("schema", "sql", "--after", "1").stdout
    first, marker, second = whole.partition("-- 0002")
    assert marker + second == rest
    for script in (first, rest):
        with psycopg.connect(database) as other:
            other.execute(script)
    assert interlock("schema", "check", "--dsn", database).returncode == 0


def test_the_printed_sql_is_printed_without_any_database(interlock, tmp_path):
    done = interlock("schema", "sql", "--json", "--dsn", "postgresql://nowhere.invalid:1/x")
    assert done.returncode == 0
    assert json.loads(done.stdout)["version"] == NEEDED
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("command", ["status", "apply", "sql", "check"])
@pytest.mark.parametrize("name", ["x; drop schema public", 'a"b', "pg_x", ""])
def test_a_hostile_schema_name_never_reaches_the_database(refused, command, name):
    unreachable = "postgresql://nowhere.invalid:1/x"
    assert "cannot name a schema" in refused(2, "schema", command, "--schema", name, "--dsn", unreachable)
