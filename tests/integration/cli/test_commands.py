from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from datetime import datetime

import pytest

from interlock.settings import known_options
from tests.harness import databases
from tests.harness.profile import SHORT_LEASES
from tests.harness.waiting import eventually_blocking
from tests.integration.cli.conftest import clean_environment

QUICK = {f"INTERLOCK_{name.upper()}": f"{value.total_seconds()}s" for name, value in SHORT_LEASES.items()}
NOWHERE = "postgresql://ada:hunter2@127.0.0.1:1/shop"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["shema"], "no such command 'shema'; did you mean 'schema'? see: interlock --help"),
        (["schema", "aply"], "did you mean 'apply'? see: interlock schema --help"),
        (["xyzzy"], "there are: audit, config, dead-letters, demo, "),
        (["config", "--sow-origin"], "--show-origin"),
        (["--verbos", "config"], "no such option"),
        (["demo", "--seconds", "soon"], "--seconds"),
        (["schema", "sql", "--after", "-1"], "--after"),
        (["config", "extra"], "unexpected extra argument"),
        (["run", "--roles", "worker,cook"], "expected some of manifests, worker, dispatch, timers, outbox"),
        (["run", "-a", "nothing"], "name it as module:attribute"),
        (["run", "-a", "no_such_module:app"], "there is no module 'no_such_module' here"),
        (["run", "-a", "json:dumps"], "it is of type function, not an Interlock app"),
        (["run", "-a", "json:nothing"], "the module has no 'nothing'"),
        (["config", "--dsn", ""], "setting 'dsn'"),
    ],
)
def test_wrong_usage_exits_2_in_one_line_that_names_what_was_meant(refused, arguments, words):
    assert words in refused(2, *arguments)


def test_without_a_command_the_help_is_shown_and_nothing_is_done(interlock):
    for arguments in ([], ["schema"]):
        done = interlock(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert "Usage: interlock" in done.stderr


def test_help_and_version_go_to_stdout(interlock):
    assert "Exit codes: 0 ok" in interlock("--help").stdout
    assert "INTERLOCK_DSN" in interlock("schema", "status", "-h").stdout
    assert interlock("--version").stdout.startswith("interlock, version ")


def test_an_app_that_fails_at_import_is_named_and_its_traceback_is_shown_on_request(interlock, refused, tmp_path):
    (tmp_path / "shop.py").write_text("raise AttributeError('oops')", "utf-8")
    assert "importing it raised AttributeError: oops" in refused(2, "config", "-a", "shop:app")
    (tmp_path / "leaver.py").write_text("raise SystemExit(0)", "utf-8")
    assert "importing it raised SystemExit" in refused(2, "config", "-a", "leaver:app")
    for loud in (["--debug", "config", "-a", "shop:app"], ["config", "-a", "shop:app", "--debug"]):
        assert "Traceback" in interlock(*loud).stderr
    assert "Traceback" not in interlock("config", "-a", "shop:app", env={"INTERLOCK_DEBUG": "0"}).stderr
    assert "Traceback" in interlock("config", "-a", "shop:app", env={"INTERLOCK_DEBUG": "1"}).stderr


@pytest.mark.parametrize("command", [["schema", "status"], ["schema", "check"], ["servers", "list"], ["run"]])
def test_a_database_that_is_not_there_is_named_without_its_password(refused, command):
    line = refused(1, *command, "--dsn", NOWHERE)
    assert "no database at 127.0.0.1:1/shop" in line
    assert "check that it runs" in line
    assert "hunter2" not in line


@pytest.mark.parametrize(
    "dsn",
    [
        "nonsense",
        "http://ada:hunter2@x/",
        "postgresql://ada:hun/ter2@h:x/y",
        "host=x password=hunter2",
        "postgresql://h:99999/y",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_without_showing_it(refused, dsn):
    line = refused(1, "schema", "status", "--dsn", dsn)
    assert "an address that cannot be read" in line
    assert "hun" not in line


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("sslmode=verify-full", "root.crt"),
        ("sslmode=odd", "must be one of: disable, allow, prefer"),
        ("sslmode=verify-full&sslrootcert=/nowhere.pem", "one of the files of sslrootcert"),
        ("target_session_attrs=odd", "target_session_attrs"),
    ],
)
def test_an_option_of_the_address_that_cannot_be_is_named_and_not_taken_for_a_bad_address(refused, query, words):
    line = refused(1, "schema", "status", "--dsn", f"{NOWHERE}?{query}", env={"HOME": "/nowhere"})
    assert words in line
    assert "127.0.0.1:1/shop" in line
    assert "cannot be read" not in line
    assert "hunter2" not in line


def test_servers_list_needs_the_schema(refused, database):
    assert re.search(r"run: interlock --dsn \S+ schema apply", refused(4, "servers", "list", "--dsn", database))


def test_servers_list_without_servers_is_empty_data_and_a_hint(interlock, migrated):
    assert json.loads(interlock("servers", "list", "--json", "--dsn", migrated).stdout) == []
    done = interlock("servers", "list", "--dsn", migrated)
    assert (done.returncode, done.stdout) == (0, "")
    assert re.search(r"start one with: interlock --dsn \S+ run$", done.stderr.strip())


def test_a_server_that_renews_no_more_is_silent_until_it_is_marked_lost(interlock, migrated):
    databases.execute(
        migrated,
        """
        INSERT INTO interlock.server (id, name, roles, trains, tags, slots, host, pid, version, state, lease,
                                      lease_until, renewed_at, steady_since, started_at, ended_at)
        SELECT gen_random_uuid(), s.name, '{}', '{}', '{}', 1, 'here', 7, '0', s.state, '10 s', now() + s.rest,
               now() - interval '1 min', now(), now() - s.rest, s.ended_at
        FROM (VALUES ('killed', 'alive', interval '-50 s', null), ('well', 'draining', interval '1 h', null),
                     ('buried', 'lost', interval '-1 min', now())) AS s (name, state, rest, ended_at)
        """,
    )
    rows = json.loads(interlock("servers", "list", "--all", "--json", "--dsn", migrated).stdout)
    assert {row["name"]: (row["state"], row["leased"]) for row in rows} == {
        "killed": ("alive", False),
        "well": ("draining", True),
        "buried": ("lost", False),
    }
    lines = interlock("servers", "list", "--all", "--dsn", migrated).stdout.splitlines()[1:]
    said = {name: state for line in lines for _, name, state, *_ in [line.split()]}
    assert said == {"killed": "silent", "well": "draining", "buried": "lost"}


def state_of(dsn: str, name: str) -> str | None:
    return databases.fetch_value(dsn, "SELECT state FROM interlock.server WHERE name = $1", name)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_run_serves_until_a_signal_leaves_the_registry_in_order_and_exits_0(fleet, interlock, migrated, number):
    env = clean_environment() | QUICK | {"INTERLOCK_DSN": migrated}
    server = fleet.command(sys.executable, "-m", "interlock", "run", "--server-name", "blue [1]", env=env)
    eventually_blocking(lambda: state_of(migrated, "blue [1]") == "alive", 60)
    (row,) = json.loads(interlock("servers", "list", "--json", "--dsn", migrated).stdout)
    assert "blue [1]" in interlock("servers", "list", "--dsn", migrated).stdout
    server.signal(number)
    assert server.wait_blocking() == 0
    assert state_of(migrated, "blue [1]") == "gone"
    assert (row["name"], row["state"], row["pid"]) == ("blue [1]", "alive", server.pid)
    assert isinstance(row["id"], str)
    assert row["started_at"].endswith("Z")
    assert datetime.fromisoformat(row["started_at"])
    (ended,) = json.loads(interlock("servers", "list", "--all", "--json", "--dsn", migrated).stdout)
    assert ended["state"] == "gone"


IMPORTING = "import os, signal, interlock\nos.kill(os.getpid(), signal.SIGTERM)\napp = interlock.Interlock()"
STARTING = """
import asyncio, os, signal, interlock

class Slow(interlock.Interlock):
    async def _ensure_schema(self, **_):
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(60)

app = Slow()
"""


@pytest.mark.parametrize("code", [IMPORTING, STARTING], ids=["while it imports", "while it starts"])
def test_a_sigterm_before_the_server_serves_is_a_clean_stop(interlock, tmp_path, migrated, code):
    (tmp_path / "shop.py").write_text(code, "utf-8")
    done = interlock("run", "-a", "shop:app", "--dsn", migrated)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "interlock: stopped by SIGTERM before it served\n"


CLOSES_SLOWLY = """
import asyncio, pathlib, interlock

class Slow(interlock.Interlock):
    async def aclose(self):
        await super().aclose()
        while not pathlib.Path(__file__).with_name("signalled").exists():
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.1)  # for the signal that was sent before

app = Slow()
"""
KEEPS_A_THREAD = """
import asyncio, time, interlock

class Busy(interlock.Interlock):
    async def aclose(self):
        asyncio.get_running_loop().run_in_executor(None, time.sleep, 120)
        await super().aclose()

app = Busy()
"""


@pytest.fixture
def stopping(fleet, migrated, tmp_path):
    """A server of an app that has stopped after a first SIGTERM, and is about to end."""

    def start(code: str):
        (tmp_path / "shop.py").write_text(code, "utf-8")
        env = clean_environment() | QUICK | {"INTERLOCK_DSN": migrated, "PYTHONPATH": str(tmp_path)}
        arguments = ["run", "-a", "shop:app", "--server-name", "blue"]
        server = fleet.command(sys.executable, "-m", "interlock", *arguments, env=env)
        eventually_blocking(lambda: state_of(migrated, "blue") == "alive", 60)
        server.terminate()
        eventually_blocking(lambda: '"Stopped"' in server.output("stderr"), 60)
        assert state_of(migrated, "blue") == "gone"
        return server

    return start


@pytest.mark.parametrize("code", [CLOSES_SLOWLY, KEEPS_A_THREAD], ids=["while it closes", "while a thread goes on"])
def test_a_second_signal_after_the_server_stopped_ends_it_without_a_word(stopping, tmp_path, code):
    server = stopping(code)
    server.terminate()
    (tmp_path / "signalled").touch()
    assert server.wait_blocking(60) == 1
    assert "Traceback" not in server.output("stderr")
    assert "before it served" not in server.output("stderr")


def test_a_thread_of_the_app_that_goes_on_does_not_keep_a_stopped_server(stopping):
    server = stopping(KEEPS_A_THREAD)
    assert server.wait_blocking(60) == 0
    assert "without waiting for a thread of the app that goes on" in server.output("stderr")


def test_the_log_of_run_is_json_without_a_terminal_and_stdout_stays_empty(fleet, migrated):
    env = clean_environment() | QUICK | {"INTERLOCK_DSN": migrated}
    server = fleet.command(sys.executable, "-m", "interlock", "run", "--json", "--server-name", "blue", env=env)
    eventually_blocking(lambda: state_of(migrated, "blue") == "alive", 60)
    server.terminate()
    assert server.wait_blocking() == 0
    records = [json.loads(line) for line in server.output("stderr").splitlines()]
    assert {"ServerRegistered", "Draining", "Stopped"} <= {record.get("event") for record in records}
    assert server.output("stdout") == ""


def test_run_obeys_the_flags_also_when_the_app_says_otherwise(fleet, migrated, tmp_path):
    (tmp_path / "shop.py").write_text(
        f"import interlock\napp = interlock.Interlock({NOWHERE!r}, server_name='red')", "utf-8"
    )
    arguments = ["run", "-a", "shop:app", "--dsn", migrated, "--server-name", "blue"]
    server = fleet.command(sys.executable, "-m", "interlock", *arguments, env=clean_environment() | QUICK)
    eventually_blocking(lambda: state_of(migrated, "blue") == "alive", 60)
    server.terminate()
    assert server.wait_blocking() == 0


def test_config_lists_every_setting_with_its_origin(interlock, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.interlock]\nlease = "20s"\nworker_slots = 3\n', "utf-8")
    env = {"INTERLOCK_WORKER_SLOTS": "4", "DATABASE_URL": "postgresql://ada:hunter2@db/shop"}
    done = interlock("config", "--json", "--schema", "tenant_7", env=env)
    found = json.loads(done.stdout)
    assert set(found) == set(known_options())
    assert found["lease"] == {"value": "20s", "origin": "pyproject.toml [tool.interlock]"}
    assert found["worker_slots"] == {"value": 4, "origin": "INTERLOCK_WORKER_SLOTS"}
    assert found["schema"] == {"value": "tenant_7", "origin": "--schema"}
    assert found["dsn"] == {"value": "db:5432/shop", "origin": "DATABASE_URL"}
    assert found["heartbeat"] == {"value": "3s", "origin": "default"}
    assert "hunter2" not in done.stdout


def test_a_flag_may_stand_before_or_after_its_command_and_the_last_one_counts(interlock):
    def schema(*arguments: str) -> str:
        return json.loads(interlock(*arguments, "--json").stdout)["schema"]["value"]

    assert schema("--schema", "ours", "config") == "ours"
    assert schema("--schema", "ours", "config", "--schema", "theirs") == "theirs"


@pytest.mark.parametrize("source", ["INTERLOCK_DSN", "DATABASE_URL", "--dsn", "file", "code"])
def test_config_never_shows_a_password_wherever_it_came_from(interlock, tmp_path, source):
    dsn, arguments, env = "postgresql://ada:hunter2@db/shop", ["config", "--show-origin"], {}
    if source == "--dsn":
        arguments += ["--dsn", dsn]
    elif source == "file":
        (tmp_path / "pyproject.toml").write_text(f'[tool.interlock]\ndsn = "{dsn}"\n', "utf-8")
    elif source == "code":
        (tmp_path / "shop.py").write_text(f"import interlock\napp = interlock.Interlock({dsn!r})", "utf-8")
        arguments += ["-a", "shop:app"]
    else:
        env[source] = dsn
    done = interlock(
        *arguments, env=env | {"INTERLOCK_REDIS_URL": "redis://:hunter2@cache", "INTERLOCK_RUNNER_SECRET": "hunter2"}
    )
    assert done.returncode == 0
    assert "***" in done.stdout
    assert "db:5432/shop" in done.stdout
    assert "cache:6379/0" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr


def test_the_app_of_the_project_file_is_the_one_that_is_meant(interlock, refused, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.interlock]\napp = "shop:app"\n', "utf-8")
    (tmp_path / "shop.py").write_text("import interlock\napp = interlock.Interlock(name='shop')", "utf-8")
    assert json.loads(interlock("config", "--json").stdout)["name"] == {"value": "shop", "origin": "argument"}
    (tmp_path / "pyproject.toml").write_text("[tool.interlock]\napp = 3\n", "utf-8")
    assert "setting 'app' is 3" in refused(2, "config")


def test_a_wrong_setting_of_the_environment_names_the_variable(refused):
    assert "'soon' (from INTERLOCK_LEASE)" in refused(2, "config", env={"INTERLOCK_LEASE": "soon"})
    assert "heartbeat=3s contradicts lease=5s" in refused(2, "run", env={"INTERLOCK_LEASE": "5"})


def test_a_misspelt_variable_is_pointed_out_on_stderr_and_does_not_disturb_the_data(interlock):
    done = interlock("config", "--json", env={"INTERLOCK_LESE": "20s"})
    assert json.loads(done.stdout)["lease"]["value"] == "10s"
    assert done.stderr == "interlock: INTERLOCK_LESE is no setting; did you mean INTERLOCK_LEASE?\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_character_that_the_console_does_not_know_is_no_error(interlock, refused, encoding):
    env = {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "1", "INTERLOCK_SERVER_NAME": "東京"}
    done = interlock("config", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "東京" in done.stdout or "\\u6771\\u4eac" in done.stdout
    assert json.loads(interlock("config", "--json", env=env).stdout)["server_name"]["value"] == "東京"
    assert "cannot name a schema" in refused(2, "config", "--schema", "→", env=env)


def test_a_reader_that_has_enough_is_no_reason_for_a_traceback(tmp_path):
    command = f"{sys.executable} -m interlock schema sql | head -c 10 >/dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""


def test_streams_that_the_caller_closed_are_no_error(tmp_path):
    command = f"{sys.executable} -m interlock config <&- >&- 2>&-; echo $?"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "0\n"


@pytest.mark.parametrize(("no_color", "styled"), [("", True), ("1", False)])
def test_a_terminal_gets_styles_unless_they_are_unwelcome(tmp_path, no_color, styled):
    """On a real pseudo-terminal, because that is what decides."""
    ours, theirs = pty.openpty()
    env = clean_environment() | {"TERM": "xterm", "NO_COLOR": no_color, "COLUMNS": "200"}
    command = [sys.executable, "-m", "interlock", "config"]
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=env, cwd=tmp_path)
    os.close(theirs)
    said = _read_all(ours)
    assert process.wait(60) == 0
    assert b"worker_slots" in said
    assert (b"\x1b[" in said) is styled


def _read_all(descriptor: int) -> bytes:
    said = b""
    try:
        while piece := os.read(descriptor, 65536):
            said += piece
    except OSError:
        pass  # a pseudo-terminal answers its end with an error
    finally:
        os.close(descriptor)
    return said
