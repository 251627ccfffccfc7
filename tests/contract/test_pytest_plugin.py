"""The plugin gives every test a database of its own, whoever asks and however the test ends."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import asyncpg

from tests.harness import run_folder
from tests.harness.databases import with_database

APP = """
from interlock import Interlock
app = Interlock("postgresql://nowhere.invalid/production", schema="jobs")

@app.train
def double(number: int) -> int:
    return number * 2
"""
TESTS = """
import pytest
from shop import app, double

@pytest.mark.parametrize("number", [1, 2])
def test_each_finds_an_empty_database(interlock_app, number):
    assert interlock_app is app
    assert "interlock_test_" in app.settings.store.dsn
    with interlock_app:
        assert double.enqueue(number).id == 1

def test_that_fails(interlock_app):
    assert False

def test_the_app_is_as_before():
    assert app.settings.store.dsn == "postgresql://nowhere.invalid/production"
"""


def run(folder: Path, *settings: str, umask: int = -1) -> subprocess.CompletedProcess[str]:
    (folder / "shop.py").write_text(APP)
    (folder / "test_shop.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("\n".join(["[pytest]", *settings]))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "interlock.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "test_shop.py",
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, check=False, umask=umask)


async def test_databases_come_and_go_on_the_named_server(tmp_path, database):
    done = run(tmp_path, "interlock_app = shop:app", f"interlock_dsn = {database}")
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    conn = await asyncpg.connect(with_database(database, "postgres"))
    left = await conn.fetch("SELECT datname FROM pg_database WHERE datname LIKE 'interlock_test_%'")
    await conn.close()
    assert left == []


def test_a_private_server_is_within_reach_of_its_account_whatever_the_umask(tmp_path, monkeypatch):
    home = Path(tempfile.mkdtemp(prefix="plugin-", dir=run_folder.path())).resolve()
    home.chmod(0o755)
    monkeypatch.setenv("INTERLOCK_HOME", str(home / "made" / "here"))
    monkeypatch.delenv("INTERLOCK_TEST_DSN", raising=False)
    done = run(tmp_path, "interlock_app = shop:app", umask=0o077)
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr


def test_an_app_that_does_not_exist_is_named(tmp_path, database):
    done = run(tmp_path, "interlock_app = shop:nothing", f"interlock_dsn = {database}")
    assert "the module has no 'nothing'" in done.stdout
