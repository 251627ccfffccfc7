"""Nothing outlives its test, and nothing outlives the run, however that ends. Proved on test runs inside this one."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import tempfile
import textwrap
from pathlib import Path

from tests.harness import ports, run_folder
from tests.harness.processes import ROOT
from tests.harness.valkey import ValkeyServer, server_binaries
from tests.harness.waiting import eventually

LEAKS = """
    import asyncio, subprocess, sys, threading
    from tests.harness import hygiene

    hygiene.GRACE = 0.2
    stop = threading.Event()

    def test_thread():
        threading.Thread(target=stop.wait, name="forgotten thread", daemon=True).start()

    def test_process():
        global kept
        kept = subprocess.Popen([sys.executable, "-c", "input('forgotten process')"], stdin=subprocess.PIPE)

    async def test_task():
        global task
        task = asyncio.create_task(asyncio.sleep(60), name="forgotten task")

    def test_clean():
        stop.set()
        kept.communicate()
"""
KILLED = """
    import time
    from tests.harness import run_folder
    from tests.harness.child import tell

    def test_everything_at_once(fleet, database, valkey_server, own_postgres):
        stopped = fleet.start("import time; time.sleep(600)")
        stopped.stop()
        shared = (run_folder.path() / "postgres" / "data" / "postmaster.pid").read_text().split()[0]
        pids = [stopped.pid, valkey_server.pid, own_postgres._popen.pid, int(shared)]
        print()  # the report of progress is a line without an end
        tell("up", folder=str(run_folder.path()), pids=pids)
        time.sleep(600)
"""
WAITS = """
    import time
    from tests.harness import run_folder
    from tests.harness.child import tell

    def test_waits():
        print()
        tell("up", folder=str(run_folder.path()))
        time.sleep(600)
"""


def inner_run(fleet, folder: Path, source: str):
    file = folder / "test_inner.py"
    file.write_text(textwrap.dedent(source))
    options = ["-s", "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={folder / 'inner'}", f"--rootdir={ROOT}"]
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), *options, "-p", "tests.conftest"]
    return fleet.command(*command, str(file))


async def test_what_outlives_its_test_fails_it_by_name(fleet, tmp_path):
    run = inner_run(fleet, tmp_path, LEAKS)
    assert await run.wait(60) == 1
    said = run.output("stdout")
    for kind in ("thread", "process", "task"):
        assert f"forgotten {kind}" in said
    assert "4 passed, 3 errors" in said


async def test_a_killed_run_leaves_no_process_behind(fleet, tmp_path):
    run = inner_run(fleet, tmp_path, KILLED)
    up = await run.expect("up", timeout=60)
    try:
        run.signal(signal.SIGKILL)
        for pid in up["pids"]:
            await eventually(lambda pid=pid: not is_running(pid), 60, f"the end of process {pid}")
    finally:
        shutil.rmtree(up["folder"], ignore_errors=True)


def test_the_next_run_removes_the_folder_of_a_killed_one_and_no_other(fleet, tmp_path):
    for name in ("killed", "living", "next"):
        (tmp_path / name).mkdir()
    killed, living = (inner_run(fleet, tmp_path / name, WAITS) for name in ("killed", "living"))
    left, kept = (Path(run.expect_blocking("up", timeout=60)["folder"]) for run in (killed, living))
    killed.kill()
    assert left.exists()
    assert inner_run(fleet, tmp_path / "next", "def test_nothing(): pass").wait_blocking(60) == 0
    assert not left.exists()
    assert kept.exists()
    living.signal(signal.SIGINT)
    living.wait_blocking()
    assert not kept.exists()
    assert run_folder.path().exists()


def test_a_folder_is_abandoned_though_its_process_number_is_in_use_again(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    reused, begins = (tmp_path / f"interlock-tests-{os.getpid()}-{name}" for name in ("reused", "begins"))
    for folder in (reused, begins):
        folder.mkdir()
    (reused / "alive").touch()
    run_folder._remove_abandoned()
    assert not reused.exists()
    assert begins.exists()


def test_a_server_whose_port_was_taken_in_the_meantime_starts_on_another(monkeypatch, tmp_path):
    with socket.socket() as rival:
        rival.bind(("127.0.0.1", 0))
        rival.listen()
        taken, free = rival.getsockname()[1], ports.free_port()
        chosen = iter([taken, free])
        monkeypatch.setattr(ports, "free_port", lambda: next(chosen))
        server = ValkeyServer(server_binaries()[0], tmp_path)
        try:
            assert server.port == free
        finally:
            server.kill()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/status")
    return not (status.exists() and "\nState:\tZ" in status.read_text())
