"""`interlock upkeep run` says what would go, asks before it deletes, and says what went."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta

import pytest


@pytest.fixture
def upkeep(migrated, tmp_path):
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "interlock", "upkeep", "run", "--dsn", migrated, *arguments]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env=os.environ | {"NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


async def test_a_dry_run_then_the_run(attic, upkeep):
    await attic.train("brief", retention=timedelta(hours=1))
    await attic.ended("brief", days=1)
    await attic.ended(days=31)
    would = upkeep("--dry-run", "--json")
    assert would.returncode == 0, would.stderr
    assert json.loads(would.stdout) == {
        "dry_run": True,
        "rows": {
            "executions": 2,
            "entries": 2,
            "dead_letters": 0,
            "acts": 0,
            "orphaned_jobs": 0,
            "servers": 0,
            "trains": 0,
            "groups": 0,
        },
        "executions_by_train": {"brief": 1, "work": 1},
        "capped": False,
        "kept_seconds": {"executions": 30 * 86400, "dead_letters": 30 * 86400, "acts": 365 * 86400},
    }
    assert len(await attic.ids("execution")) == 2
    shown = upkeep("--dry-run").stdout
    assert "ended executions" in shown
    assert "of them of brief" in shown
    assert upkeep("--yes").returncode == 0
    assert await attic.ids("execution") == set()
    ages = "executions 30 d (or their train's retention), resolved dead letters 30 d, the audit 365 d"
    assert upkeep("--yes").stderr == f"nothing is old enough to go; kept: {ages}\n"


async def test_each_batch_that_a_person_deletes_is_in_the_audit_and_what_servers_delete_is_not(attic, upkeep):
    await attic.ended(days=31)
    await attic.retention().run()
    assert await attic.ids("audit") == set()
    await attic.ended(days=31)
    assert upkeep("--yes", "--actor", "ada", "--note", "disk is full").returncode == 0
    rows = await attic.conn.fetch("SELECT actor, via, action, target_kind, target, after, note FROM interlock.audit")
    assert [tuple(row) for row in rows] == [
        ("ada", "cli", "forget", "history", kind, '{"rows": 1}', "disk is full") for kind in ("executions", "entries")
    ]


async def test_without_its_row_in_the_audit_nothing_goes(attic):
    """One transaction: where the audit cannot be written, nothing is deleted."""
    kept = await attic.ended(days=31)

    async def full(*_) -> None:
        raise OSError("no space left for the audit")

    with pytest.raises(OSError, match="no space"):
        await attic.retention().run(full)
    assert await attic.ids("execution") == {kept}


async def test_nobody_is_asked_who_is_not_there(attic, upkeep):
    await attic.ended(days=31)
    refused = upkeep()
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--yes" in refused.stderr
    assert len(await attic.ids("execution")) == 1
