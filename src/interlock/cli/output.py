"""How data reaches the user: JSON for programs, a table on a terminal."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

json_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--json", "as_json", envvar="INTERLOCK_JSON", show_envvar=True, is_flag=True, help="Print JSON."
)


def show_json(value: Any) -> None:
    click.echo(json.dumps(value, default=_plain, ensure_ascii=False))


def show_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Aligned columns; colour only where rich finds a terminal and NO_COLOR is not set."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(_text(cell) for cell in row))
    Console().print(table, markup=False)


def _text(cell: Any) -> str:
    if isinstance(cell, timedelta):
        return f"{cell.total_seconds():.1f} s"
    return ", ".join(cell) if isinstance(cell, tuple) else ("-" if cell is None else str(cell))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{value!r} has no JSON form")
