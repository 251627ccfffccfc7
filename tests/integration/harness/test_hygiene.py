"""Nothing outlives its test, and nothing outlives the run, however that ends. Proved on test runs inside this one."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import textwrap
from pathlib import Path

from tests.harness.processes import ROOT
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
            await eventually(lambda pid=pid: not is_running(pid), 20, f"the end of process {pid}")
    finally:
        shutil.rmtree(up["folder"], ignore_errors=True)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/status")
    return not (status.exists() and "\nState:\tZ" in status.read_text())
