"""Records as JSON and as lines for people: ids are text, times are UTC, durations are seconds."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from interlock.cli.output import show_json, show_table
from interlock.errors import InvalidSchedule
from interlock.model.schedule_json import decode_schedule
from interlock.model.schedule_text import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from interlock.model.reading import Page

T = TypeVar("T")

FLATTENED = frozenset({"line", "letter"})
"""Parts of a detail whose fields stand beside those of the detail itself."""


def record(value: Any) -> dict[str, Any]:
    """A dataclass as a JSON object."""
    found: dict[str, Any] = {}
    for field in fields(value):
        part = getattr(value, field.name)
        if field.name in FLATTENED:
            found |= record(part)
        else:
            found[field.name] = _plain(field.name, part)
    return found


def _plain(name: str, value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return record(value)
    if isinstance(value, list | tuple):
        return [_plain(name, item) for item in value]
    if isinstance(value, int) and (name == "id" or name.endswith("_id")):
        return str(value)
    return value


def show_page(
    page: Page[T],
    columns: Sequence[str],
    cells: Callable[[T], Sequence[Any]],
    *,
    as_json: bool,
    nothing: str,
    cursor: str,
    spare: Sequence[str] = (),
) -> None:
    """The lines of a page; how to see more is said on stderr."""
    if as_json:
        show_json([record(line) for line in page.lines])
        return
    if not page.lines:
        click.echo(nothing, err=True)
        return
    show_table(columns, [cells(line) for line in page.lines], spare=spare)
    if page.next is not None:
        many = "" if page.total is None else f"{page.total:,}{'' if page.is_counted else '+'} in all; "
        click.echo(f"{many}more with: {cursor} {page.next}", err=True)


def show_fields(found: dict[str, Any]) -> None:
    """One thing, a line per field that says something."""
    rows = [(name.replace("_", " "), value) for name, value in found.items() if value not in (None, "", [], {})]
    show_table(("field", "value"), rows)


def schedule_text(stored: Any) -> str:
    """The schedule in words, or as it is stored if this code cannot read it."""
    try:
        return describe(decode_schedule(stored))
    except InvalidSchedule:
        return str(stored)
