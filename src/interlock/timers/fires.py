"""When a timer fires on this server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from interlock.model.schedule import Cron, Every, next_occurrence
from interlock.timers.spread import spread

if TYPE_CHECKING:
    from interlock.timers.timer import Timer

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Fires:
    """Times of one timer on one server; whatever was missed is left out, never made up for in a burst."""

    def __init__(self, timer: Timer, server: str) -> None:
        self._timer, self._server = timer, server
        self._anchor: datetime | None = None

    def first(self, now: datetime) -> datetime | None:
        """An interval without spread fires at once, all others at their next time."""
        match self._timer.schedule:
            case Every(interval) if self._timer.spread_start:
                self._anchor = EPOCH + spread(self._timer.name, self._server, interval)
            case Every():
                self._anchor = now
                return now
            case Cron():
                self._anchor = now
        return self.after(now)

    def after(self, now: datetime) -> datetime | None:
        """The first time that lies after now."""
        return next_occurrence(self._timer.schedule, now, self._anchor or now)
