"""How data reaches the user: JSON for programs, a table for people."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

_UNLIMITED = 100_000


def show_json(value: Any) -> None:
    """One line of JSON; what the console cannot write is escaped as JSON itself does it."""
    unicode = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"
    click.echo(json.dumps(value, default=_plain, ensure_ascii=not unicode))


def show_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Aligned columns, folded on a terminal only: a line stays a line for `grep`."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_text(cell)) for cell in row))
    console = _console()
    with console.capture() as captured:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _console() -> Console:
    """Styles only for a terminal that wants them, whatever other variables say."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    styled = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Console(
        force_terminal=terminal,
        color_system="standard" if styled else None,
        width=None if terminal else _UNLIMITED,
        highlight=False,
        emoji=False,
    )


def _text(cell: Any) -> str:
    if isinstance(cell, timedelta):
        return f"{cell.total_seconds():.1f} s"
    text = ", ".join(cell) if isinstance(cell, tuple) else ("-" if cell is None else str(cell))
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text) or "-"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{value!r} has no JSON form")
