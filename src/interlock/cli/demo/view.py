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
        self._tables = (_servers(servers), _trains(trains))
        self._refresh()

    def _refresh(self) -> None:
        from rich.columns import Columns
        from rich.console import Group
        from rich.text import Text

        above = [Columns(self._tables, padding=(0, 4))] if self._tables else []
        lines = [Text(line, overflow="ellipsis", no_wrap=True) for line in self._lines]
        self._live.update(Group(*above, Text(), *lines), refresh=True)


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


def _servers(rows: Sequence[ServerRow]) -> Any:
    from rich.table import Table

    table = Table("server", "state", "heartbeat", title="servers", title_justify="left")
    for row in rows:
        age = f"{row.heartbeat_age.total_seconds():.1f} s ago" if row.ended_at is None else "-"
        style = {"alive": "green", "lost": "red"}.get(row.state, "dim")
        table.add_row(row.profile.name, row.state, age, style=style)
    return table


def _trains(rows: Sequence[TrainCounts]) -> Any:
    from rich.table import Table

    table = Table("train", "waiting", "running", "completed", "failed", title="trains", title_justify="left")
    for row in rows:
        cells = (row.waiting, row.running, row.completed, row.failed)
        table.add_row(row.train, *(str(cell) if cell else "·" for cell in cells))
    return table
