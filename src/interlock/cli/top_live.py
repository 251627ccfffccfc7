"""The live picture of `top`, and its keys."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import tty
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from interlock.cli.top_screen import line
from interlock.operate.blockers.words import counted, span
from interlock.store.gauging import MOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import RenderableType

    from interlock.operate.gauges import Gauges

VIEWS = ("queue", "running", "groups", "servers")
ROWS_BESIDE_THE_TABLE = 6


class LivePicture:
    """Drawn anew at each look and each key; held still on request."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(no_color=bool(os.environ.get("NO_COLOR")), highlight=False, emoji=False)
        self._live = Live(console=self._console, screen=True, auto_refresh=False)
        self._gauges: Gauges | None = None
        self._view, self._held, self._error = VIEWS[0], False, ""
        self._end: Callable[[], None] = lambda: None

    @contextmanager
    def opened(self, end: Callable[[], None]) -> Iterator[None]:
        self._end = end
        with self._live, keys(self.press):
            yield

    def show(self, gauges: Gauges) -> None:
        self._error = ""
        if not self._held:
            self._gauges = gauges
        self._draw()

    def fail(self, error: str) -> None:
        self._error = error
        self._draw()

    def press(self, key: str) -> None:
        if key in ("q", "\x1b", "\x03"):
            self._end()
        elif key == " ":
            self._held = not self._held
        elif key == "\t":
            self._view = VIEWS[(VIEWS.index(self._view) + 1) % len(VIEWS)]
        elif key.isdigit() and 1 <= int(key) <= len(VIEWS):
            self._view = VIEWS[int(key) - 1]
        self._draw()

    def _draw(self) -> None:
        self._live.update(self.picture(), refresh=True)

    def picture(self) -> RenderableType:
        if self._gauges is None:
            return Text("looking")
        views = "  ".join(f"[{number}] {view}" for number, view in enumerate(VIEWS, 1))
        hint = "held: space goes on, q ends" if self._held else "space holds, q ends"
        return Group(
            Text(line(self._gauges)),
            Text(f"{views}   {hint}", style="dim"),
            Text(self._error, style="red"),
            self._table(self._gauges),
        )

    def _table(self, gauges: Gauges) -> Table:
        columns, rows = _TABLES[self._view](gauges)
        table = Table(box=None, pad_edge=False, title=self._view, title_justify="left")
        for column in columns:
            table.add_column(column, no_wrap=True)
        for row in rows[: max(self._console.height - ROWS_BESIDE_THE_TABLE, 1)]:
            table.add_row(*(Text("-" if cell is None else str(cell)) for cell in row))
        return table


def _queue(gauges: Gauges) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    rows = [(lane.group_name, lane.train, counted(lane.waiting, MOST), span(lane.oldest)) for lane in gauges.lanes]
    return ("group", "train", "waiting", "first waits"), rows


def _running(gauges: Gauges) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    rows = [
        (run.id, run.train, run.manifest, run.state, run.host, run.attempt, span(run.age), run.junction)
        for run in gauges.running
    ]
    return ("execution", "train", "manifest", "state", "server", "attempt", "for", "junction"), rows


def _groups(gauges: Gauges) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    rows = [
        (group.name, group.active, group.cap, group.priority, "on" if group.enabled else "off")
        for group in gauges.groups
    ]
    return ("group", "active", "cap", "priority", "switch"), rows


def _servers(gauges: Gauges) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    busy = [run.host for run in gauges.running if run.state == "in_progress"]
    rows = [
        (member.name, member.state if member.leased else "silent", busy.count(member.name), member.slots,
         ", ".join(member.roles), span(member.heartbeat_age))
        for member in gauges.fleet
    ]  # fmt: skip
    return ("server", "state", "running", "slots", "roles", "heartbeat"), rows


_TABLES = {"queue": _queue, "running": _running, "groups": _groups, "servers": _servers}


@contextmanager
def keys(press: Callable[[str], None]) -> Iterator[None]:
    """Each key as it is typed, without echo; nothing where nobody can type. The terminal is put back at the end."""
    if not sys.stdin.isatty():
        yield
        return
    number, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    before = termios.tcgetattr(number)
    tty.setcbreak(number)
    loop.add_reader(number, lambda: _typed(number, press))
    try:
        yield
    finally:
        loop.remove_reader(number)
        termios.tcsetattr(number, termios.TCSADRAIN, before)


def _typed(number: int, press: Callable[[str], None]) -> None:
    typed = os.read(number, 64).decode("utf-8", "replace")
    if typed.startswith("\x1b") and len(typed) > 1:  # an arrow or another key of several characters
        return
    for key in typed:
        press(key)
