"""How the demo looks: a picture that changes on a terminal, plain lines elsewhere, nothing for programs."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.live import Live

    from interlock.model.server import ServerRow
    from interlock.store.summary import TrainCounts

LINES = 14
FEWEST_LINES = 4
TALL = 40
"""Rows of a terminal that has room for frames around the tables."""


class View(Protocol):
    def say(self, text: str) -> None:
        """Something happened."""
        ...

    def draw(self, servers: Sequence[ServerRow], trains: Sequence[TrainCounts]) -> None:
        """How things stand."""
        ...


class Quiet:
    def say(self, text: str) -> None: ...

    def draw(self, servers: Sequence[ServerRow], trains: Sequence[TrainCounts]) -> None: ...


class Plain:
    """One line per happening."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        click.echo(f"{time.monotonic() - self._began:5.1f} s  {text}")

    def draw(self, servers: Sequence[ServerRow], trains: Sequence[TrainCounts]) -> None: ...


class Picture:
    """Servers and trains above, the latest happenings below."""

    def __init__(self, live: Live) -> None:
        self._live, self._began = live, time.monotonic()
        self._lines: deque[str] = deque(maxlen=LINES)
        self._tables: tuple[Any, ...] = ()

    def say(self, text: str) -> None:
        self._lines.append(f"{time.monotonic() - self._began:5.1f} s  {text}")
        self._refresh()

    def draw(self, servers: Sequence[ServerRow], trains: Sequence[TrainCounts]) -> None:
        framed = self._live.console.height >= TALL
        self._tables = (_servers(servers, framed=framed), _trains(trains, framed=framed))
        self._refresh()

    def _refresh(self) -> None:
        from rich.console import Group
        from rich.text import Text

        above, room = self._above()
        lines = [Text(line, overflow="ellipsis", no_wrap=True) for line in list(self._lines)[-room:]]
        self._live.update(Group(*above, *lines), refresh=True)

    def _above(self) -> tuple[list[Any], int]:
        """The tables that leave room for news, and for how many lines: the latest matter most."""
        from rich.columns import Columns
        from rich.text import Text

        console = self._live.console
        for tables in (self._tables, self._tables[:1]):
            above = Columns(tables, padding=(0, 4))
            room = console.height - len(console.render_lines(above)) - 1
            if room >= FEWEST_LINES:
                return [above, Text()], room
        return [], console.height


@contextmanager
def open_view(*, quiet: bool) -> Iterator[View]:
    if quiet:
        yield Quiet()
    elif not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        yield Plain()
    else:
        from rich.console import Console
        from rich.live import Live

        console = Console(no_color=bool(os.environ.get("NO_COLOR")), highlight=False, emoji=False)
        with Live(console=console, auto_refresh=False, vertical_overflow="crop", redirect_stderr=False) as live:
            yield Picture(live)


def _table(*headers: str, title: str, framed: bool) -> Any:
    from rich.box import HEAVY_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=HEAVY_HEAD if framed else None)
    for header in headers:
        table.add_column(header, no_wrap=True)
    return table


def _servers(rows: Sequence[ServerRow], *, framed: bool) -> Any:
    table = _table("server", "state", "heartbeat", title="servers", framed=framed)
    for row in rows:
        age = f"{row.heartbeat_age.total_seconds():.1f} s ago" if row.ended_at is None else "-"
        style = {"alive": "green", "lost": "red"}.get(row.state, "dim")
        table.add_row(row.profile.name, row.state, age, style=style)
    return table


def _trains(rows: Sequence[TrainCounts], *, framed: bool) -> Any:
    table = _table("train", "waiting", "running", "completed", "failed", title="trains", framed=framed)
    for row in rows:
        cells = (row.waiting, row.running, row.completed, row.failed)
        table.add_row(row.train, *(str(cell) if cell else "·" for cell in cells))
    return table
