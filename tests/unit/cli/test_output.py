from __future__ import annotations

import io
import json
import re
import sys
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from interlock.cli.config import _shown
from interlock.cli.output import show_json, show_table, show_text


class Console(io.TextIOWrapper):
    def __init__(self, *, terminal: bool = False, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding, errors="backslashreplace")
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)


@pytest.fixture
def console(monkeypatch):
    def use(**how) -> Console:
        made = Console(**how)
        monkeypatch.setattr(sys, "stdout", made)
        monkeypatch.setenv("TERM", "xterm")
        for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS"):
            monkeypatch.delenv(name, raising=False)
        return made

    return use


def test_json_writes_moments_in_utc_durations_in_seconds_and_ids_as_strings(console):
    out = console()
    moment = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    show_json({"at": moment, "took": timedelta(milliseconds=1500), "id": UUID(int=7)})
    assert json.loads(out.text()) == {
        "at": "2026-03-01T10:00:00Z",
        "took": 1.5,
        "id": "00000000-0000-0000-0000-000000000007",
    }


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_json_reads_back_whatever_the_console_can_write(console, encoding):
    out, value = console(encoding=encoding), {"name": "Zürich → 東京 \x1b[2J \x9b2J \u202e \U000e0001"}
    show_json(value)
    assert json.loads(out.text()) == value
    assert out.text().rstrip("\n").isprintable()


def test_what_has_no_json_form_is_an_error_and_not_a_guess(console):
    console()
    with pytest.raises(TypeError):
        show_json({"x": object()})


def test_a_row_stays_one_line_without_a_terminal(console):
    out = console()
    show_table(("a", "b"), [("x" * 300, "y" * 300), (None, ())])
    lines = out.text().splitlines()
    assert lines[1].split() == ["x" * 300, "y" * 300]
    assert lines[2].split() == ["-", "-"]
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize(("terminal", "no_color", "styled"), [(True, "", True), (True, "1", False), (False, "", False)])
def test_only_a_terminal_that_wants_it_gets_styles(console, monkeypatch, terminal, no_color, styled):
    out = console(terminal=terminal)
    monkeypatch.setenv("NO_COLOR", no_color)
    show_table(("a",), [("x",)])
    assert ("\x1b[" in out.text()) is styled


def test_a_variable_that_forces_colour_does_not_force_it_on_a_pipe(console, monkeypatch):
    out = console()
    monkeypatch.setenv("FORCE_COLOR", "1")
    show_table(("a",), [("x",)])
    assert "\x1b[" not in out.text()


def test_a_name_can_neither_steer_the_terminal_nor_be_taken_for_markup(console):
    out = console()
    show_table(("a",), [("\x1b[2Jgone\nnext",), ("[red]bold[/red] :smile:",)])
    text = out.text()
    assert "\x1b" not in text
    assert "\\x1b[2Jgone\\nnext" in text
    assert "[red]bold[/red] :smile:" in text


def test_lines_of_others_stay_lines_and_cannot_steer_the_terminal(console):
    out = console(terminal=True)
    show_text('File "a.py"\n\tx\x1b[2J\x9b2J\r\u202eé')
    assert out.text() == 'File "a.py"\n\tx\\x1b[2J\\x9b2J\\r\\u202eé\n'


def test_durations_and_lists_read_well_in_a_table(console):
    out = console()
    show_table(("age", "roles", "at"), [(timedelta(seconds=1.26), ("a", "b"), datetime(2026, 1, 1, tzinfo=UTC).date())])
    assert re.split(r"\s{2,}", out.text().splitlines()[1]) == ["1.3 s", "a, b", "2026-01-01"]


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("dsn", "postgresql://u:hunter2@db:5433/shop", "db:5433/shop"),
        ("redis_url", "rediss://u:hunter2@cache:6380/2", "cache:6380/2"),
        ("redis_url", "redis://:hunter2@cache", "cache:6379/0"),
        ("redis_url", "redis://:hun/ter2@cache", "an address that cannot be read"),
        ("redis_url", "hunter2", "an address that cannot be read"),
        ("redis_url", "redis://:hunter2@cache:port/0", "an address that cannot be read"),
        ("redis_url", "redis://[hunter2", "an address that cannot be read"),
        ("redis_url", None, None),
    ],
)
def test_an_address_is_shown_without_its_password(name, value, shown):
    assert _shown(name, value) == shown
