"""What destroys asks a person at a terminal first; the shell completes what exists and is never disturbed."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys

import pytest

from interlock.operate.resolve import ResolveCommands
from tests.harness import databases
from tests.integration.cli.conftest import clean_environment
from tests.integration.cli.in_process import Console

GROUP = "INSERT INTO interlock.manifest_group (name) VALUES ('etl'), ('east')"
APP = """from interlock import Interlock, every

app = Interlock(name="shop")


@app.train
def work() -> None: ...


app.schedule("hourly", work.bind(), every(hours=1))
"""
PAUSED = "SELECT coalesce((SELECT paused FROM interlock.train WHERE name = '*'), false)"


def test_before_history_goes_the_question_names_the_ages_of_the_app(monkeypatch, console):
    ages = 'execution_retention="400d", dead_letter_retention="12h", audit_retention=None'
    name = console.module(f"from interlock import Interlock\n\napp = Interlock({ages})\n")
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    said = console("upkeep", "run", "-a", f"{name}:app")
    assert said.exit_code == 1
    assert (
        "executions 400 d (or their train's retention), resolved dead letters 12 h, the audit for ever?" in said.stderr
    )


def test_a_list_that_fails_half_way_says_how_many_were_done(monkeypatch, console):
    async def half(*_) -> None:
        error = OSError("gone")
        error.add_note("500 dead letters were acknowledged")
        raise error

    monkeypatch.setattr(ResolveCommands, "acknowledge_many", half)
    said = console("dead-letters", "acknowledge", "--all", "--yes")
    assert (said.exit_code, said.stdout) == (1, "")
    assert said.stderr == "interlock: 500 dead letters were acknowledged\ninterlock: OSError: gone\n"


FAILED = """
INSERT INTO interlock.execution (state, entry_id, first_entry_id, kind, train, input, group_id, attempt, crashes,
    max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, ended_at, failure, traceback)
VALUES ('failed', 1, 1, 'adhoc', 'work', '{}', 1, 1, 0, 1, 1, '1 s', '1 s', 1, now(), 'error',
    E'Traceback\\n  ValueError: \\x1b[2Jgone\\n')
"""


@pytest.fixture
def console(monkeypatch, capsys, tmp_path, migrated) -> Console:
    found = Console(monkeypatch, capsys, tmp_path)
    found.always = ["--dsn", migrated]
    return found


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "exit_code", "paused"), [("y\n", 0, True), ("n\n", 1, False), ("", 1, False)])
def test_a_person_at_a_terminal_is_asked_and_the_answer_counts(
    monkeypatch, console, migrated, answer, exit_code, paused
):
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    said = console("pause")
    assert said.exit_code == exit_code
    assert "pause all trains?" in said.stderr
    assert databases.fetch_value(migrated, PAUSED) is paused


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("manifests", "prune"), "removed nothing"),
        (("dead-letters", "requeue", "--all"), "requeued 0 dead letters"),
        (("dead-letters", "acknowledge", "--train", "x"), "acknowledged 0 dead letters"),
    ],
)
def test_where_nothing_would_be_done_nobody_is_asked(monkeypatch, console, words, said):
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    done = console(*words, "-a", f"{console.module(APP)}:app")
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{said}\n", "")


def test_json_may_be_asked_for_before_the_command(console):
    assert console("--json", "groups", "list").data == console.json("groups", "list") != []


def test_a_dry_run_asks_nobody(console, migrated):
    assert console("pause", "--dry-run").stdout == "would pause all trains\n"
    assert not databases.fetch_value(migrated, PAUSED)


def test_on_a_real_terminal_the_question_stands_before_the_deed(tmp_path, migrated):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "interlock", "pause", "--dsn", migrated]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=clean_environment(), cwd=tmp_path
    )
    os.close(theirs)
    said = b""
    while b"[y/N]" not in said:
        said += os.read(ours, 1024)
    assert not databases.fetch_value(migrated, PAUSED)
    os.write(ours, b"y\n")
    assert process.wait(60) == 0
    os.close(ours)
    assert databases.fetch_value(migrated, PAUSED)


def completions(tmp_path, words: str, **env: str) -> tuple[list[str], str]:
    """What the shell is offered for the last of these words."""
    asked = {"_INTERLOCK_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", "from interlock.cli import main; main()"],
        env=clean_environment() | asked | env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return [line.removeprefix("plain,") for line in done.stdout.split()], done.stderr


def test_the_shell_completes_names_from_the_database(tmp_path, migrated):
    databases.execute(migrated, GROUP)
    assert completions(tmp_path, "interlock groups set e", INTERLOCK_DSN=migrated) == (["east", "etl"], "")


@pytest.mark.parametrize(("words", "offered"), [("interlock man", "manifests"), ("interlock manifests tr", "trigger")])
def test_the_shell_completes_commands(tmp_path, words, offered):
    assert completions(tmp_path, words) == ([offered], "")


@pytest.mark.parametrize("dsn", ["postgresql://127.0.0.1:1/nowhere", "nonsense"])
def test_the_shell_is_not_disturbed_by_a_database_that_is_not_there(tmp_path, dsn):
    assert completions(tmp_path, "interlock groups set e", INTERLOCK_DSN=dsn) == ([], "")


def test_no_embedded_server_is_started_to_complete_a_word(tmp_path):
    home = tmp_path / "home"
    assert completions(tmp_path, "interlock groups set e", INTERLOCK_HOME=str(home)) == ([], "")
    assert not home.exists()


def test_the_tables_for_people_can_be_read(console):
    assert "default" in console("groups", "list").stdout
    for noun, words in {
        "manifests": "no manifest fits",
        "queue": "nothing waits",
        "executions": "no execution fits",
        "dead-letters": "nothing waits for a person",
        "audit": "nobody did anything",
    }.items():
        said = console(noun, "list")
        assert (said.exit_code, said.stdout, said.stderr) == (0, "", f"{words}\n")


NAMED = """
import interlock
app = interlock.Interlock(name="shop")
@app.train
def sell(count: int = 1) -> None: ...
app.schedule("sales", sell.bind(2), None).then("report", sell.bind())
"""


@pytest.mark.parametrize(("noun", "words"), [("timers", "has declared such a timer"), ("locks", "holds such a slot")])
def test_who_finds_nothing_is_told_where_was_looked(console, noun, words):
    unnamed = console(noun, "list").stderr
    assert unnamed.endswith(f"{words} in the namespace 'default': an app has its own, name it with -a\n")
    assert console(noun, "list", "-a", f"{console.module(NAMED)}:app").stderr.endswith(
        f"{words} in the namespace 'shop'\n"
    )


def test_what_an_error_says_cannot_steer_the_terminal(console, migrated):
    broken = console.module('raise ValueError("\\x1b[2Jgone")')
    assert "ValueError: \\x1b[2Jgone;" in console.refused(2, "groups", "list", "-a", f"{broken}:app")
    databases.execute(migrated, FAILED)
    assert console("executions", "show", 1).stdout.endswith("Traceback\n  ValueError: \\x1b[2Jgone\n\n")


def test_what_a_manifest_holds_is_shown_as_it_is_written(console, migrated):
    app = console.module(NAMED)
    code = f"import {app}\nwith {app}.app.running(['manifests']): pass"
    env = clean_environment() | {"INTERLOCK_DSN": migrated}
    subprocess.run([sys.executable, "-c", code], env=env, cwd=console.folder, check=True, timeout=60)
    shown = dict(line.split(maxsplit=1) for line in console("manifests", "show", "sales").stdout.splitlines())
    assert (shown["input"], shown["children"]) == ('{"count": 2}', "report")
