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
    click.echo(json_text(value))


def json_text(value: Any) -> str:
    """One line of JSON; what the console cannot write, or would obey, is escaped as JSON itself does it."""
    unicode = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, default=_plain, ensure_ascii=not unicode)
    return text if text.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def printable(text: str, *, but: str = "") -> str:
    """What others wrote, with an escape for each character that would steer the terminal."""
    return "".join(char if char.isprintable() or char in but else ascii(char)[1:-1] for char in text)


def show_text(text: str) -> None:
    """Lines that others wrote, such as a traceback."""
    click.echo(printable(text, but="\n\t"))


def show_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, spare: Sequence[str] = ()) -> None:
    """Aligned columns, fitted to a terminal only: elsewhere a line stays a line for `grep`.

    `spare` names what a narrow terminal may leave out, the most dispensable first; what was left out is said.
    """
    from rich.table import Table
    from rich.text import Text

    from interlock.cli.table import lay_out

    layout = lay_out(columns, rows, width=_console(None).width if sys.stdout.isatty() else None, spare=spare)
    table = Table(box=None, pad_edge=False)
    for column in layout.columns:
        table.add_column(column.name, overflow="fold", no_wrap=column.name not in layout.folds)
    for row in zip(*(column.cells for column in layout.columns), strict=True):
        table.add_row(*map(Text, row))
    console = _console(layout.width or _UNLIMITED)
    with console.capture() as captured:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))
    if layout.spared:
        click.echo(f"left out for want of room: {', '.join(layout.spared)}", err=True)


def _console(width: int | None) -> Console:
    """Styles only for a terminal that wants them, whatever other variables say."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    styled = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Console(
        force_terminal=terminal,
        color_system="standard" if styled else None,
        width=width,
        highlight=False,
        emoji=False,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{value!r} has no JSON form")
