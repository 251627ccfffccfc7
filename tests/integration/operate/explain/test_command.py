"""`interlock explain` as people and programs see it."""

from __future__ import annotations

import json
import shlex

import pytest

from interlock.observe.redact import without_password
from tests.integration.cli.conftest import interlock

__all__ = ["interlock"]


async def test_it_prints_the_standing_then_each_blocker_with_evidence_and_command(station, interlock):
    await station.client()
    handle = await station.work.aenqueue()
    done = interlock("explain", f"entry:{handle.id}", "--dsn", station.dsn)
    assert done.returncode == 0, done.stderr
    standing, blank, title, found, advice, command = done.stdout.splitlines()
    assert standing.startswith(f"entry {handle.id} of train work (adhoc, attempt 1 of 3) has been queued for")
    assert (blank, title) == ("", "NO_DISPATCHER")
    assert shlex.split(command) == ["interlock", "--dsn", without_password(station.dsn), "run"]
    assert found.startswith("  found: of 0 live servers")
    assert advice == "  do:    start a server of the app that declares work"
    record = json.loads(interlock("explain", f"entry:{handle.id}", "--json", "--dsn", station.dsn).stdout)
    (blocker,) = record["blockers"]
    assert (record["subject"], blocker["code"]) == (f"entry:{handle.id}", "NO_DISPATCHER")
    assert set(blocker) == {"code", "evidence", "advice", "command", "details"}


async def test_what_nothing_blocks_says_so(station, interlock):
    await station.client()
    handle = await station.work.aenqueue()
    await station.app.acancel_entry(handle.id)
    lines = interlock("explain", f"entry:{handle.id}", "--dsn", station.dsn).stdout.splitlines()
    assert lines == [f"entry {handle.id} is cancelled", "nothing blocks it"]


@pytest.mark.parametrize(
    ("subject", "code", "words"),
    [
        ("entry:x", 2, "a number, for example entry:42"),
        ("42", 2, "expected execution:42, entry:42, message:42 or the id of a manifest"),
        ("entry:1", 3, "no execution or entry is called '1'"),
        ("nothing", 3, "no manifest is called 'nothing'"),
        ("timer:nothing", 3, "no timer is called 'nothing'"),
    ],
)
def test_bad_subjects_are_one_line_and_the_exit_code_of_their_kind(interlock, migrated, subject, code, words):
    done = interlock("explain", subject, "--dsn", migrated)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr


def test_without_a_schema_it_says_what_to_run_and_with_another_version_it_explains(interlock, database):
    done = interlock("explain", "m", "--dsn", database)
    assert (done.returncode, done.stdout) == (4, "")
    command = shlex.split(done.stderr.partition("; run: ")[2])
    assert command == ["interlock", "--dsn", without_password(database), "schema", "apply"]
