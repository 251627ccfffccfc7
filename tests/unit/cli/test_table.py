from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime, timedelta

import pytest

from interlock.cli.output import show_table
from interlock.cli.table import lasting, lay_out, said

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAMES = ("id", "state", "train", "kind", "at", "failure", "error")
ROW = (
    7,
    "completed",
    "refresh_customers",
    "scheduled",
    datetime(2020, 3, 1, tzinfo=UTC),
    None,
    "ValueError: the 7th row is empty",
)
WHOLE = 2 + 9 + 17 + 9 + 20 + 7 + 32 + 6 * 2


def names(layout) -> list[str]:
    return [column.name for column in layout.columns]


@pytest.mark.parametrize("width", [None, WHOLE, 500])
def test_a_table_that_fits_is_shown_whole(width):
    layout = lay_out(NAMES, [ROW], width=width, spare=("kind",))
    assert (names(layout), layout.folds, layout.spared) == ([*NAMES], frozenset(), ())
    assert layout.columns[4].cells == ["2020-03-01T00:00:00Z"]


def test_a_narrow_terminal_gets_short_moments_and_no_column_that_says_nothing():
    layout = lay_out(NAMES, [ROW], width=WHOLE - 1, spare=("kind",))
    assert names(layout) == ["id", "state", "train", "kind", "at", "error"]
    assert layout.columns[4].cells == ["2020-03-01"]
    assert layout.spared == ()


def test_text_folds_before_a_column_is_spared_and_no_name_is_broken():
    assert lay_out(NAMES, [ROW], width=80, spare=("kind",)).folds == {"error"}


def test_only_so_many_columns_are_spared_as_needed_and_the_list_says_which_first():
    layout = lay_out(NAMES, [ROW], width=65, spare=("kind", "state"))
    assert layout.spared == ("kind",)
    assert names(layout) == ["id", "state", "train", "at", "error"]


def test_names_fold_when_nothing_else_can_be_spared():
    assert lay_out(NAMES, [ROW], width=60, spare=("kind",)).folds == {"train", "error"}


def test_what_fits_in_no_way_keeps_its_columns_and_lets_the_terminal_break_the_lines():
    layout = lay_out(NAMES, [ROW], width=30, spare=("kind",))
    assert (names(layout), layout.width) == (["id", "state", "train", "kind", "at", "error"], None)


@pytest.mark.parametrize(
    ("at", "short"),
    [
        (NOW - timedelta(hours=2), "10:00:00Z"),
        (NOW - timedelta(hours=13), "02-28 23:00Z"),
        (NOW - timedelta(days=365), "2025-03-01"),
    ],
)
def test_a_moment_is_as_short_as_its_day_allows(at, short):
    assert said(at, NOW) == short


@pytest.mark.parametrize(
    "value", [{"name": "Zoë", "rush": True, "note": None}, [{"id": 1, "at": "2026-03-01"}], {}, []]
)
def test_what_has_parts_is_shown_as_json_that_a_flag_takes_back(monkeypatch, value):
    with io.TextIOWrapper(io.BytesIO(), encoding="utf-8") as console:
        monkeypatch.setattr(sys, "stdout", console)
        assert json.loads(said(value)) == value
        assert "\\u" not in said(value)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 ms"), (0.0094, "9 ms"), (3.14, "3.1 s"), (74, "1 min 14 s"), (-2, "-2.0 s")]
)
def test_a_duration_has_the_unit_that_fits_it(seconds, words):
    assert lasting(timedelta(seconds=seconds)) == words


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_no_line_is_longer_than_the_terminal_and_what_was_left_out_is_said(monkeypatch, capsys):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    show_table(NAMES, [ROW], spare=("kind",))
    assert max(map(len, terminal.getvalue().splitlines())) <= 60
    assert "left out for want of room: kind" in capsys.readouterr().err
