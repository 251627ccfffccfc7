"""The demo shows a fleet at work, a loss and the recovery from it, and leaves nothing behind however it is ended."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import asyncpg
import pytest

from interlock.embedded import EmbeddedServer
from tests.harness import run_folder
from tests.harness.waiting import eventually_blocking

PATIENCE = 90


@pytest.fixture
def home() -> Path:
    """A home that the account of PostgreSQL can reach."""
    folder = Path(tempfile.mkdtemp(prefix="demo-", dir=run_folder.path()))
    folder.chmod(0o755)
    return folder


@pytest.fixture
def demo(fleet, home):
    """Starts the demo with settings around it that must not matter."""
    (home / "project").mkdir()
    misleading = {"INTERLOCK_APP": "no:app", "INTERLOCK_SCHEMA": "elsewhere", "INTERLOCK_LEASE": "1h"}
    env = misleading | {"INTERLOCK_HOME": str(home), "DATABASE_URL": "postgresql://nowhere.invalid/x"}

    def start(*arguments: str):
        return fleet.command(sys.executable, "-m", "interlock", "demo", *arguments, env=env)

    return start


def processes_of(home: Path) -> list[str]:
    """Who still runs with a word of this demo in its command line or environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if str(home).encode() in words and int(process.name) != os.getpid():
            found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode() if process.exists() else "")
    return found


def nothing_is_left(home: Path) -> None:
    eventually_blocking(lambda: not processes_of(home), 10, f"the end of every process of {home}")
    assert list(home.glob("demo-*")) == []


COUNTS = {
    "queued": "SELECT count(*) FROM interlock.work_queue",
    "completed": "SELECT count(*) FROM interlock.execution WHERE state = 'completed'",
    "retried": "SELECT count(*) FROM interlock.execution WHERE attempt > 1",
    "dead_lettered": "SELECT count(*) FROM interlock.dead_letter",
    "servers": "SELECT count(*) FROM interlock.server",
    "servers_lost": "SELECT count(*) FROM interlock.server WHERE state = 'lost'",
    "messages_delivered": "SELECT count(*) FROM interlock.outbox WHERE state = 'delivered'",
}


async def test_its_numbers_are_those_of_the_database(demo, home):
    process = demo("--seconds", "10", "--json", "--keep")
    assert await process.wait(PATIENCE) == 0
    summary = json.loads(process.output("stdout"))
    (kept,) = home.glob("demo-*")
    assert summary["folder"] == str(kept)
    with EmbeddedServer(kept / "pg") as server:
        conn = await asyncpg.connect(server.start())
        found = {name: await conn.fetchval(question) for name, question in COUNTS.items()}
        await conn.close()
    assert {name: summary[name] for name in COUNTS} == found
    assert (summary["servers"], summary["servers_lost"], summary["dead_lettered"]) == (4, 1, 1)
    assert summary["recovered"] >= 1
    assert summary["completed"] > 10
    assert min(summary["retried"], summary["messages_delivered"], summary["timer_runs"]) > 0
    assert summary["pickup_median"] < 0.5
    assert summary["recovered_within"] < 15
    assert process.output("stderr") == ""
    assert "Fatal" not in "".join(log.read_text() for log in kept.glob("*.log"))


def test_a_viewer_sees_retries_a_dead_letter_and_the_recovery(demo, home):
    process = demo()
    wanted = [
        "again in 1.0 s",
        "completed on server-",
        "at attempt 2",
        "dead letter 1 waits for a person",
        "which was at work",
        "is lost",
        "queued again in its old place",
        " anew",
        "recovered from a lost server",
    ]
    for sentence in wanted:
        eventually_blocking(lambda: sentence in process.output("stdout"), PATIENCE, sentence)  # noqa: B023  at once
    said = process.output("stdout")
    assert said.index("which was at work") < said.index("is lost") < said.index("recovered from a lost server")
    process.signal(signal.SIGINT)
    assert process.wait_blocking(PATIENCE) == 0
    assert "taken over from the killed server" in process.output("stdout")
    nothing_is_left(home)


IN_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


def test_a_terminal_shows_a_picture_and_a_summary(home, fleet):
    """The picture is drawn over and over."""
    env = {"INTERLOCK_HOME": str(home), "TERM": "xterm"}
    demo = [sys.executable, "-m", "interlock", "demo", "--seconds", "2"]
    process = fleet.command(sys.executable, "-c", IN_A_TERMINAL, *demo, env=env)
    assert process.wait_blocking(PATIENCE) == 0
    shown = process.output("stdout")
    assert "summary, from the database" in shown
    assert shown.count("heartbeat") > 2
    nothing_is_left(home)


THAT_IS_CLOSED = """
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
seen = b""
while seen.count(b"alive") < 3:
    seen += os.read(terminal, 65536)
os.close(terminal)
os.waitpid(pid, 0)
"""


def test_a_terminal_that_is_closed_leaves_nothing(home, fleet):
    """It hangs up, and nothing can be written to it any more."""
    env = {"INTERLOCK_HOME": str(home), "TERM": "xterm"}
    process = fleet.command(sys.executable, "-c", THAT_IS_CLOSED, sys.executable, "-m", "interlock", "demo", env=env)
    assert process.wait_blocking(PATIENCE) == 0
    nothing_is_left(home)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_with_a_summary_and_nothing_left(demo, home, number):
    process = demo()
    eventually_blocking(lambda: process.output("stdout").count("is alive") >= 3, PATIENCE, "three servers")
    process.signal(number)
    assert process.wait_blocking(PATIENCE) == 0
    assert "summary, from the database" in process.output("stdout")
    assert "  3  servers registered" in process.output("stdout")
    assert "Traceback" not in process.output("stderr")
    nothing_is_left(home)


def test_ctrl_c_while_the_database_starts_leaves_nothing(demo, home):
    process = demo()
    eventually_blocking(lambda: "starting a PostgreSQL" in process.output("stdout"), PATIENCE, "its first words")
    process.signal(signal.SIGINT)
    assert process.wait_blocking(PATIENCE) == 0
    assert process.output("stderr") == ""
    nothing_is_left(home)


def test_a_killed_demo_takes_its_servers_and_its_database_along(demo, home):
    process = demo()
    eventually_blocking(lambda: process.output("stdout").count("is alive") >= 3, PATIENCE, "three servers")
    assert len(processes_of(home)) > 4
    os.kill(process.pid, signal.SIGKILL)
    process.wait_blocking(10)
    eventually_blocking(lambda: not processes_of(home), 30, "the end of what the demo started")


def test_it_keeps_its_folder_on_request_and_says_how_to_look_into_it(demo, home, fleet):
    process = demo("--seconds", "1", "--keep")
    assert process.wait_blocking(PATIENCE) == 0
    (kept,) = home.glob("demo-*")
    assert f"the database stays in {kept}" in process.output("stdout")
    (look,) = re.findall("INTERLOCK_EMBEDDED_FOLDER=(.*) interlock executions list", process.output("stdout"))
    list_servers = [sys.executable, "-m", "interlock", "servers", "list", "--all"]
    looked = fleet.command(*list_servers, env={"INTERLOCK_EMBEDDED_FOLDER": look})
    assert looked.wait_blocking(PATIENCE) == 0
    assert "server-1" in looked.output("stdout")
    assert (kept / "pg/data/PG_VERSION").exists()


def test_importing_the_app_costs_less_than_four_times_asyncio_itself(tmp_path, monkeypatch):
    """The best of both in turns, because the machine is shared, and compiled, as they are where they are installed."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    clock = "time.process_time()"
    script = f"a = {clock}; import asyncio; b = {clock}; from interlock import Interlock; print(b - a, {clock} - b)"
    runs = _five_times(script) + _five_times(script)
    of_asyncio, of_the_app = (min(times) for times in zip(*runs, strict=True))
    assert of_the_app < 4 * of_asyncio, runs


def test_the_app_does_not_load_what_only_some_need():
    costly = {"asyncpg", "click", "rich", "uvloop", "redis", "psycopg", "pydantic", "starlette", "sqlalchemy"}
    script = "import sys; from interlock import Interlock; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=30)
    assert costly & set(done.stdout.split()) == set()


def _five_times(script: str) -> list[list[float]]:
    """What the script printed, a new process each time."""
    command = [sys.executable, "-c", f"import time; {script}"]
    runs = [subprocess.run(command, check=True, capture_output=True, timeout=30).stdout for _ in range(5)]
    return [[float(word) for word in run.split()] for run in runs]
