"""A table for people: whole where it fits; on a narrow terminal with what can be spared left out, then folded.

Moments get short, columns that say nothing go, then those that the list can spare, one by one. Text folds sooner than
a name or a number, because those are copied. What fits in no way stays whole, and the terminal breaks its lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from interlock.cli.output import json_text, printable
from interlock.operate.blockers.words import span

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

GAP = 2
TEXT_FOLDS_TO, NAMES_FOLD_TO = 16, 12
NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    cells: list[str]

    @property
    def width(self) -> int:
        return max(map(cell_len, (self.name, *self.cells)))

    @property
    def is_text(self) -> bool:
        return any(" " in cell for cell in self.cells)

    def least(self, *, names: bool) -> int:
        folds_to = NAMES_FOLD_TO if names else (TEXT_FOLDS_TO if self.is_text else self.width)
        return min(self.width, max(folds_to, cell_len(self.name)))


@dataclass(frozen=True, slots=True)
class Layout:
    columns: list[Column]
    width: int | None
    """None: as wide as it is."""
    folds: frozenset[str] = frozenset()
    spared: tuple[str, ...] = ()


def lay_out(
    names: Sequence[str], rows: Sequence[Sequence[Any]], *, width: int | None, spare: Collection[str] = ()
) -> Layout:
    """How to show the rows on a terminal of this width; None is no terminal: all of it, a line each."""
    whole = [Column(name, [said(row[place]) for row in rows]) for place, name in enumerate(names)]
    if width is None or _needed(whole) <= width:
        return Layout(whole, None)
    now = datetime.now(UTC)
    short = [Column(name, [said(row[place], now) for row in rows]) for place, name in enumerate(names)]
    short = [column for column in short if {*column.cells} != {NOTHING}]
    spared = [name for name in spare if any(column.name == name for column in short)]
    kept = [[column for column in short if column.name not in spared[:count]] for count in range(len(spared) + 1)]
    for count, columns in enumerate(kept):
        if _needed(columns, folded=True) <= width:
            return Layout(columns, width, _folding(columns, names=False), tuple(spared[:count]))
    if _needed(kept[-1], folded=True, names=True) <= width:
        return Layout(kept[-1], width, _folding(kept[-1], names=True), tuple(spared))
    return Layout(short, None)


def said(cell: Any, now: datetime | None = None) -> str:
    """A cell as text; with `now` a moment is as short as its day allows."""
    if isinstance(cell, datetime):
        return moment(cell) if now is None else _short(cell.astimezone(UTC), now)
    if isinstance(cell, timedelta):
        return lasting(cell)
    if isinstance(cell, dict | list):
        return said(json_text(cell), now)
    text = ", ".join(cell) if isinstance(cell, tuple) else (NOTHING if cell is None else str(cell))
    return printable(text) or NOTHING


def moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def lasting(duration: timedelta) -> str:
    seconds = duration.total_seconds()
    if seconds < 0:
        return f"-{lasting(-duration)}"
    return f"{seconds:.1f} s" if 1 <= seconds < 60 else span(duration)  # noqa: PLR2004  a minute


def _short(at: datetime, now: datetime) -> str:
    return at.strftime(
        "%H:%M:%SZ" if at.date() == now.date() else "%m-%d %H:%MZ" if at.year == now.year else "%Y-%m-%d"
    )


def _needed(columns: Sequence[Column], *, folded: bool = False, names: bool = False) -> int:
    widths = [column.least(names=names) if folded else column.width for column in columns]
    return sum(widths) + GAP * max(len(widths) - 1, 0)


def _folding(columns: Sequence[Column], *, names: bool) -> frozenset[str]:
    return frozenset(column.name for column in columns if column.least(names=names) < column.width)
