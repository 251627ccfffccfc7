"""The database's time between two readings of it, so that a host whose clock is wrong fires with the others."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime


class DatabaseTime:
    """The last reading, carried on by the monotonic clock; one that does not move stands still until the next."""

    def __init__(
        self,
        read: Callable[[], Awaitable[datetime]],
        *,
        clock: Callable[[], float] = time.monotonic,
        moves: bool = True,
    ) -> None:
        self._read, self._clock = read, clock if moves else _standing_still
        self._reading: tuple[datetime, float] | None = None

    async def refresh(self) -> None:
        asked = self._clock()
        read = await self._read()
        # The answer was made about halfway between the question and now.
        self._reading = read, (asked + self._clock()) / 2

    def now(self) -> datetime:
        if self._reading is None:
            raise AssertionError("the time was never read")
        read, at = self._reading
        return read + timedelta(seconds=self._clock() - at)


def _standing_still() -> float:
    return 0.0
