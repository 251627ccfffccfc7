"""When a submitter is to be asked again: after a failure, or when there is room, for all or for one train.

A failure and a want of room in general end the cycle, because what a whole queue waits for is not to be tried with each
of it. What only one train has to wait for keeps no other from its place.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from interlock.dispatch.submitters.protocol import NoRoom

AFTER_NOTICE, SHORTEST = timedelta(seconds=0.01), timedelta(seconds=0.1)
"""For those who say that there is no room and that it is of no use to wait."""
FIRST, MOST_DOUBLINGS, LONGEST = timedelta(seconds=2), 10, timedelta(seconds=10)
"""After failures; short, because a runner that is back is then soon asked for the others."""


class _Until(NamedTuple):
    at: float
    at_notice: float
    """Later than the notice itself: another runner may have told it, so that notices set no pace of their own."""


_NOW = _Until(0.0, 0.0)


class Pauses:
    def __init__(self) -> None:
        self._again_at, self._failures = 0.0, 0
        self._room = _NOW
        self._trains: dict[str, _Until] = {}

    def failed(self) -> None:
        pause = min(FIRST * 2 ** min(self._failures, MOST_DOUBLINGS), LONGEST)
        self._again_at = time.monotonic() + pause.total_seconds()
        self._failures += 1

    def answered(self) -> None:
        """Whoever answers, if only that there is no room, is not away."""
        self._failures = 0

    def wait_for_room(self, busy: NoRoom, train: str) -> None:
        now = time.monotonic()
        at = now + max(busy.after, SHORTEST).total_seconds()
        until = _Until(at, now + AFTER_NOTICE.total_seconds() if busy.or_notice else at)
        if busy.train_only:
            self._trains[train] = until
        else:
            self._room = until

    def has_room(self) -> bool:
        """A runner has room again: answers whether that was waited for. It ends no other pause."""
        now = time.monotonic()
        waited = any(until.at_notice < until.at and until.at > now for until in (self._room, *self._trains.values()))
        self._room = _noticed(self._room)
        self._trains = {train: _noticed(until) for train, until in self._trains.items()}
        return waited

    def for_all(self) -> timedelta:
        """How long to ask for nothing; zero where nothing is to be waited for."""
        now = time.monotonic()
        return timedelta(seconds=max(self._room.at - now, self._again_at - now, 0))

    def for_any(self) -> timedelta | None:
        """How long until more may be asked for than now; None where nothing is to be waited for."""
        now = time.monotonic()
        self._trains = {train: until for train, until in self._trains.items() if until.at > now}
        soonest = min((timedelta(seconds=until.at - now) for until in self._trains.values()), default=None)
        return self.for_all() or soonest

    def open(self, trains: Iterable[str]) -> list[str]:
        """Those that may be asked for now."""
        now = time.monotonic()
        return [train for train in trains if self._trains.get(train, _NOW).at <= now]


def _noticed(until: _Until) -> _Until:
    return until._replace(at=min(until.at, until.at_notice))
