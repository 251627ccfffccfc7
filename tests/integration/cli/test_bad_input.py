"""Every command with what cannot be: one clear line on stderr, the right exit code, no traceback unless asked for."""

from __future__ import annotations

import re

import pytest

from tests.harness.commands import every_path, path_in
from tests.integration.cli.in_process import Console

NOWHERE = "postgresql://ada:hunter2@127.0.0.1:1/shop"
READING = [
    ["manifests", "list"],
    ["manifests", "show", "m"],
    ["manifests", "next"],
    ["manifests", "graph"],
    ["manifests", "diff"],
    ["groups", "list"],
    ["queue", "list"],
    ["queue", "show", "1"],
    ["executions", "list"],
    ["executions", "show", "1"],
    ["dead-letters", "list"],
    ["dead-letters", "show", "1"],
    ["audit", "list"],
    ["servers", "list"],
    ["locks", "list"],
    ["timers", "list"],
    ["outbox", "list"],
    ["outbox", "show", "1"],
    ["outbox", "stats"],
    ["outbox", "doctor"],
    ["explain", "m"],
    ["health"],
    ["top", "--seconds", "0"],
    ["schema", "check"],
]
CHANGING = [
    ["manifests", "trigger", "m"],
    ["manifests", "enable", "m"],
    ["manifests", "disable", "m"],
    ["manifests", "prune", "--yes"],
    ["groups", "set", "g", "--cap", "3"],
    ["queue", "cancel", "1", "--yes"],
    ["executions", "cancel", "1", "--yes"],
    ["executions", "rerun", "1"],
    ["dead-letters", "requeue", "1", "--yes"],
    ["dead-letters", "acknowledge", "1", "--yes"],
    ["enqueue", "greet", "--arg", "name=Ada"],
    ["pause", "--yes"],
    ["resume"],
    ["locks", "release", "report", "0", "--yes"],
    ["outbox", "park", "mail"],
    ["outbox", "unpark", "mail"],
    ["outbox", "redrive", "1", "--yes"],
    ["upkeep", "run", "--yes"],
]
WITHOUT_SCHEMA = [["schema", "status"], ["schema", "apply"], ["doctor"], ["run"]]
"""What also has an answer, or makes one, where the schema is missing."""
WITHOUT_DATABASE = [["config"], ["dsn"], ["schema", "sql"], ["runner"]]
"""What asks no database; a runner wants its secret first."""
WITHOUT_APP = {"demo": "a world of its own", "dev": "a file, and its errors are shown until it is mended"}
NEED_SCHEMA = READING + CHANGING
NEED_DATABASE = NEED_SCHEMA + WITHOUT_SCHEMA
NEED_APP = NEED_DATABASE + WITHOUT_DATABASE


def each(commands: list[list[str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("command", commands, ids=" ".join)


NAMED_APP = "import interlock\napp = interlock.Interlock(name='shop')"


@pytest.fixture
def console(monkeypatch, capsys, tmp_path) -> Console:
    return Console(monkeypatch, capsys, tmp_path)


def test_every_command_is_tried_here():
    assert {path_in(command) for command in NEED_APP} | set(WITHOUT_APP) == every_path()


@each(NEED_DATABASE)
def test_a_database_that_is_not_there_is_named_without_its_password(console, command):
    app = console.module(NAMED_APP)
    line = console.refused(1, *command, "--dsn", NOWHERE, "-a", f"{app}:app")
    assert "no database at 127.0.0.1:1/shop" in line
    assert "hunter2" not in line


@each(NEED_APP)
def test_an_app_that_fails_at_import_is_named_and_its_traceback_shown_on_request(console, command):
    broken = console.module("raise RuntimeError('oops')")
    assert "importing it raised RuntimeError: oops" in console.refused(2, *command, "-a", f"{broken}:app")
    loud = console(*command, "-a", f"{broken}:app", "--debug")
    assert loud.exit_code == 2
    assert "Traceback" in loud.stderr


@pytest.fixture
def empty(console, module_empty_database) -> Console:
    console.always = ["--dsn", module_empty_database, "-a", f"{console.module(NAMED_APP)}:app"]
    return console


@pytest.fixture(scope="module")
def module_empty_database(postgres_dsn):
    from tests.harness import databases

    yield (dsn := databases.create(postgres_dsn))
    databases.drop(postgres_dsn, dsn)


@each(NEED_SCHEMA)
def test_a_missing_schema_is_a_precondition(empty, command):
    assert re.search(r"; run: interlock -a \S+:app --dsn \S+ schema apply$", empty.refused(4, *command))


@pytest.fixture
def shop(console, module_database) -> Console:
    console.always = ["--dsn", module_database]
    return console


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["manifests", "show", "nothing"], "no manifest is called 'nothing'"),
        (["manifests", "next", "nothing"], "no manifest is called 'nothing'"),
        (["manifests", "trigger", "nothing"], "no manifest is called 'nothing'"),
        (["manifests", "enable", "nothing"], "no manifest is called 'nothing'"),
        (["manifests", "disable", "nothing", "--dry-run"], "no manifest is called 'nothing'"),
        (["groups", "set", "nothing", "--cap", "3"], "no manifest group is called 'nothing'; known: default"),
        (["queue", "show", "4711"], "no execution or entry is called '4711'"),
        (["queue", "cancel", "4711", "--yes"], "no execution or entry is called '4711'"),
        (["executions", "show", "4711"], "no execution or entry is called '4711'"),
        (["executions", "cancel", "4711", "--yes"], "no execution or entry is called '4711'"),
        (["executions", "cancel", "--manifest", "nothing", "--yes"], "no manifest is called 'nothing'"),
        (["executions", "cancel", "--group", "nothing", "--yes"], "no manifest group is called 'nothing'"),
        (["executions", "rerun", "4711"], "no execution or entry is called '4711'"),
        (["executions", "rerun", "4711", "--arg", "a=1"], "no execution or entry is called '4711'"),
        (["dead-letters", "show", "4711"], "no dead letter is called '4711'"),
        (["dead-letters", "requeue", "4711", "--yes"], "no dead letter is called '4711'"),
        (["dead-letters", "requeue", "4711", "4712", "--yes"], "no dead letter is called '4711'"),
        (["dead-letters", "acknowledge", "4711", "--yes"], "no dead letter is called '4711'"),
        (["enqueue", "nothing"], "no train is called 'nothing'"),
        (["pause", "nothing", "--yes"], "no train is called 'nothing'"),
        (["resume", "nothing"], "no train is called 'nothing'"),
        (["explain", "nothing"], "no manifest is called 'nothing'"),
        (["explain", "entry:4711"], "no execution or entry is called '4711'"),
        (["explain", "timer:nothing"], "no timer is called 'nothing'"),
        (["locks", "release", "nothing", "0", "--yes"], "nothing"),
        (["outbox", "show", "nothing"], "nothing"),
        (["outbox", "redrive", "4711", "--yes"], "4711"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_what_does_not_exist_is_named_with_exit_code_3(shop, command, words):
    line = shop.refused(3, *command)
    assert words in line
    assert "known" in line or "; see: interlock " in line


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["executions", "show", "forty-two"], "is not a valid integer"),
        (["executions", "show", "0"], "not in the range"),
        (["executions", "cancel", str(2**63), "--yes"], "not in the range"),
        (["executions", "cancel", "--yes"], "ids, or --manifest, or --group: one of them"),
        (["executions", "cancel", "1", "--group", "g", "--yes"], "one of them"),
        (["executions", "list", "--state", "done"], "--state"),
        (["executions", "list", "--limit", "0"], "--limit"),
        (["executions", "rerun", "1", "--arg", "name"], "expected NAME=VALUE"),
        (["queue", "cancel"], "missing argument"),
        (["queue", "list", "--kind", "odd"], "--kind"),
        (["groups", "set", "default"], "one of --cap, --no-cap"),
        (["groups", "set", "default", "--cap", "0"], "--cap"),
        (["groups", "set", "default", "--cap", "3", "--no-cap"], "either a --cap or --no-cap"),
        (["groups", "set", "default", "--priority", "32"], "--priority"),
        (["outbox", "redrive", "--all", "--rate", "nan", "--yes"], "is not a valid number"),
        (["dead-letters", "requeue", "--yes"], "ids, or --all, or filters"),
        (["dead-letters", "requeue", "1", "--all", "--yes"], "one of the three"),
        (["manifests", "trigger", "m", "--delay", "soon"], "is not a duration such as 30s"),
        (["manifests", "trigger", "m", "--delay", "-3s"], "--delay"),
        (["manifests", "next", "-n", "many"], "is not a valid integer"),
        (["manifests", "graph", "--format", "svg"], "--format"),
        (["manifests", "prune", "--yes"], "an app without a name owns no manifests"),
        (["enqueue"], "missing argument"),
        (["enqueue", "t", "--timeout", "3s"], "expected --wait with it"),
        (["enqueue", "t", "--priority", "64"], "--priority"),
        (["audit", "list", "--target-kind", "odd"], "--target-kind"),
        (["explain", "entry:x"], "a number, for example entry:42"),
        (["explain"], "missing argument"),
        (["locks", "release", "report", "first", "--yes"], "is not a valid integer"),
        (["outbox", "list", "--state", "odd"], "--state"),
        (["outbox", "redrive", "--rate", "0", "--all", "--yes"], "--rate"),
        (["outbox", "redrive", "--yes"], "nothing was chosen: name messages"),
        (["queue", "cancel", "abc"], "'abc' is not a valid integer;"),
        (["groups", "set", "default", "--cap", "few"], "'few' is not a valid integer;"),
        (["enqueue", "t", "--arg", "a=1", "--arg", "a=2"], "a=1 came before"),
        (["top", "--interval", "0"], "--interval"),
        (["upkeep", "run", "--yes", "extra"], "unexpected extra argument"),
        (["run", "--probes", "here"], "probes"),
        (["runner"], "'runner_secret' is None"),
        (["runner", "--listen", "here"], "listen='here'; expected PORT"),
        (["runner", "--listen", "example.com:80"], "instead of a name that may leave this machine"),
        (["dev"], "missing argument"),
        (["manifests", "lst"], "did you mean 'list'?"),
        (["dead-leters"], "did you mean 'dead-letters'?"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_wrong_usage_is_named_with_exit_code_2(shop, command, words):
    assert words in shop.refused(2, *command)


@pytest.mark.parametrize(
    "command",
    [
        ["queue", "cancel", "1"],
        ["executions", "cancel", "1"],
        ["dead-letters", "requeue", "1"],
        ["dead-letters", "acknowledge", "--all"],
        ["manifests", "prune"],
        ["pause"],
        ["outbox", "redrive", "--all"],
        ["upkeep", "run"],
    ],
    ids=" ".join,
)
def test_what_destroys_asks_nobody_where_nobody_is(shop, command):
    line = shop.refused(2, *command)
    assert "nobody can be asked here: add --yes to do it, or --dry-run" in line
    assert f"see: interlock {path_in(command)} --help" in line


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def (", "importing it raised SyntaxError: invalid syntax"),
        ("import no_such_package", "importing it raised ModuleNotFoundError: No module named 'no_such_package'"),
    ],
)
def test_a_module_that_is_found_and_broken_is_to_be_mended_not_named_otherwise(console, code, words):
    line = console.refused(2, "config", "-a", f"{console.module(code)}:app")
    assert words in line
    assert line.endswith("; mend the module; --debug shows the traceback")


@pytest.mark.parametrize("name", ["no_such_module:app", "no_such_package.jobs:app"])
def test_a_module_that_is_not_there_is_looked_for_in_the_right_folder(console, name):
    line = console.refused(2, "config", "-a", name)
    missing = name.partition(":")[0].partition(".")[0]
    assert f"there is no module {missing!r} here; run it in the folder that holds the module" in line


def test_a_user_of_the_database_without_privileges_is_told_where_they_are_named(console, module_database):
    from tests.harness import databases

    databases.execute(module_database, "CREATE ROLE poor LOGIN PASSWORD 'poor'")
    try:
        dsn = module_database.partition("@")[2]
        line = console.refused(1, "manifests", "list", "--dsn", f"postgresql://poor:poor@{dsn}")
    finally:
        databases.execute(module_database, "DROP ROLE poor")
    assert line == (
        "the user of the database lacks a privilege: permission denied for schema interlock;"
        f" each missing grant is named by: interlock --dsn 'postgresql://poor:***@{dsn}' doctor"
    )


def test_a_database_that_takes_no_writes_is_told_as_what_it_is(console, module_database):
    dsn = f"{module_database}?options=-c%20default_transaction_read_only%3Don"
    line = console.refused(1, "groups", "set", "default", "--cap", "2", "--dsn", dsn)
    assert "the database takes no writes: cannot execute" in line
    assert line.endswith("; name all hosts with target_session_attrs=read-write")


TRAINS = """
import interlock
from dataclasses import dataclass
app = interlock.Interlock()
@dataclass
class Order:
    id: int
@app.train
def sell(order: Order, count: int = 1, note: str | None = None, tags: list[str] = []) -> None: ...
"""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "'order' is missing"),
        (["--arg", "color=red"], "parameter 'color' is unknown; there are: order, count, note, tags"),
        (["--arg", "count=many"], "count: expected integer, found 'many'"),
        (["--arg", "count=1.5"], "count: expected integer, found 1.5"),
        (["--arg", 'order={"id": "x"}'], "expected integer, found 'x'"),
        (["--arg", 'order={"id": 1}', "--arg", "tags=[1]"], "expected string, found 1"),
        (["--input", "[1]"], "it is not a JSON object"),
        (["--input", "{"], "it is not valid JSON"),
        (["--input", '{"order": {"id": 1}, "note": "a\\u0000b"}'], "NUL character"),
    ],
)
def test_an_input_that_the_train_would_not_take_is_refused_at_the_call(shop, arguments, words):
    app = shop.module(TRAINS)
    line = shop.refused(2, "enqueue", "sell", *arguments, "-a", f"{app}:app")
    assert line.startswith("input of train 'sell': ")
    assert words in line
