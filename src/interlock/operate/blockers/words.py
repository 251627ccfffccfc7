"""Times and durations as people read them."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def at(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")


def span(duration: timedelta) -> str:
    """The two largest units: `2 h 5 min`."""
    seconds = abs(duration.total_seconds())
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    words, left = [], round(seconds)
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            words.append(f"{count} {unit}")
    return " ".join(words[:2])


def ahead(moment: datetime, now: datetime) -> str:
    """The moment and how far off it is."""
    distance = moment - now
    return f"{at(moment)} ({f'in {span(distance)}' if distance > timedelta(0) else f'{span(distance)} ago'})"


def counted(number: int, most: int) -> str:
    """A count that stopped at a limit says so."""
    return f"{most}+" if number >= most else str(number)
