"""The live view: a picture with keys on a terminal, lines elsewhere, JSON for programs."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
import termios
from contextlib import suppress
from datetime import timedelta

import pytest

from interlock import Interlock
from interlock.testing import stepper
from tests.harness.waiting import eventually_blocking
from tests.integration.cli.conftest import clean_environment


@pytest.fixture
def busy(migrated) -> str:
    """Three entries that wait, two dispatched, one delayed, one dead letter."""

    async def fill() -> None:
        app = Interlock(migrated)

        @app.train
        async def work() -> None: ...

        @app.train(max_attempts=1)
        async def fail() -> None:
            raise ValueError("no")

        async with stepper(app) as step:
            await fail.aenqueue()
            await step.drain()
            await app.aenqueue_many([work.bind(), work.bind()])
            await step.tick("dispatch")
            await app.aenqueue_many([work.bind()] * 3)
            await work.using(delay=timedelta(hours=1)).aenqueue()

    asyncio.run(fill())
    return migrated


def test_without_a_terminal_each_look_is_one_line(interlock, busy):
    done = interlock("top", "--dsn", busy, "--seconds", "0")
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    assert "ready 3  delayed 1  dispatched 2  running 0" in line
    assert "failed/min 1  dead letters 1  servers 0" in line


def test_as_json_each_look_is_one_object(interlock, busy):
    done = interlock("top", "--dsn", busy, "--seconds", "1.5", "--interval", "0.3", "--json")
    looks = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(looks) >= 2
    (lane,) = looks[0]["lanes"]
    assert (lane["group"], lane["train"], lane["waiting"]) == ("default", "work", 3)
    assert [run["state"] for run in looks[0]["executions"]] == ["pending", "pending"]
    assert isinstance(looks[0]["executions"][0]["id"], str)
    assert [(group["name"], group["active"]) for group in looks[0]["groups"]] == [("default", 2)]
    assert looks[0]["now"].endswith("Z")


def test_a_reader_that_has_what_it_wanted_ends_the_watch(busy, tmp_path):
    """As `| head -1` does: not a database that is away, which is looked for again and again."""
    command = [sys.executable, "-m", "interlock", "top", "--dsn", busy, "--interval", "0.1"]
    env, pipe = clean_environment(), subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=env, cwd=tmp_path) as process:
        assert b"ready 3" in process.stdout.readline()
        process.stdout.close()
        try:
            process.wait(60)
        finally:
            process.kill()
        assert (process.returncode, process.stderr.read()) == (1, b"")


class Terminal:
    """A `top` on a pseudo-terminal, and what it has drawn so far."""

    def __init__(self, dsn: str, folder, kind: str = "xterm") -> None:
        self.ours, self.theirs = pty.openpty()
        termios.tcsetwinsize(self.ours, (40, 160))
        self.before = termios.tcgetattr(self.theirs)
        env = clean_environment() | {"TERM": kind, "INTERLOCK_DSN": dsn}
        command = [sys.executable, "-m", "interlock", "top", "--interval", "0.2"]
        self.process = subprocess.Popen(
            command, stdin=self.theirs, stdout=self.theirs, stderr=self.theirs, env=env, cwd=folder
        )
        os.set_blocking(self.ours, False)
        self.said = b""

    def read(self) -> bytes:
        with suppress(OSError):  # nothing new, or the end
            self.said += os.read(self.ours, 65536)
        return self.said

    def shows(self, text: bytes) -> None:
        eventually_blocking(lambda: text in self.read(), 60, f"{text!r} on the screen")

    def press(self, key: bytes) -> None:
        self.said = b""
        os.write(self.ours, key)

    def ended(self) -> int:
        eventually_blocking(lambda: (self.read(), self.process.poll() is not None)[1], 60, "the end")
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def terminal(busy, tmp_path):
    terminal = Terminal(busy, tmp_path)
    yield terminal
    terminal.close()


def test_on_a_terminal_keys_choose_what_is_listed_and_q_ends_and_restores_it(terminal):
    terminal.shows(b"first waits")
    terminal.press(b"2")
    terminal.shows(b"junction")
    terminal.press(b"\t")
    terminal.shows(b"switch")
    terminal.press(b"4")
    terminal.shows(b"heartbeat")
    terminal.press(b" ")
    terminal.shows(b"held")
    terminal.press(b"q")
    assert terminal.ended() == 0
    assert b"\x1b[?1049l" in terminal.read()
    assert termios.tcgetattr(terminal.theirs) == terminal.before


def test_a_terminal_that_cannot_be_drawn_on_gets_lines(busy, tmp_path):
    dumb = Terminal(busy, tmp_path, "dumb")
    try:
        dumb.shows(b"ready 3  delayed 1")
        dumb.process.send_signal(signal.SIGINT)
        assert dumb.ended() == 0
        assert b"\x1b" not in dumb.said
    finally:
        dumb.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_as_well_and_restores_the_terminal(terminal, number):
    terminal.shows(b"first waits")
    terminal.process.send_signal(number)
    assert terminal.ended() == 0
    assert termios.tcgetattr(terminal.theirs) == terminal.before


def test_a_missing_schema_and_a_missing_database_end_it_at_once(interlock, database):
    assert interlock("top", "--dsn", database).returncode == 4
    assert interlock("top", "--dsn", "postgresql://127.0.0.1:1/x").returncode == 1


def test_it_outlives_an_outage_of_the_database(own_postgres, fleet, interlock):
    assert interlock("schema", "apply", "--dsn", own_postgres.dsn).returncode == 0
    command = [sys.executable, "-m", "interlock", "top", "--interval", "0.1", "--dsn", own_postgres.dsn]
    watching = fleet.command(*command, env=clean_environment())
    eventually_blocking(lambda: "ready 0" in watching.output("stdout"), 60)
    own_postgres.stop("immediate")
    eventually_blocking(lambda: watching.output("stderr"), 60)
    seen = len(watching.output("stdout"))
    own_postgres.start()
    eventually_blocking(lambda: len(watching.output("stdout")) > seen, 60)
    watching.terminate()
    assert watching.wait_blocking() == 0
    assert "Traceback" not in watching.output("stderr")
