"""Keeps timers from asking a lock service that fails, and notices by itself when it answers again.

Falling back for ever after one failure is how everybody ends up running at once; asking at every tick makes an outage
worse. So after a few failures in a row nobody asks for a while, then a single timer tries, and its answer decides.
"""

from __future__ import annotations

import time
from enum import StrEnum
from typing import TYPE_CHECKING

from interlock.observe.events.timer import BreakerChanged

if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.observe.bus import Emit

THRESHOLD = 3
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    def __init__(self, *, emit: Emit, clock: Callable[[], float] = time.monotonic) -> None:
        self.state = BreakerState.CLOSED
        self._emit, self._clock = emit, clock
        self._failures = 0
        self._pause, self._try_at = FIRST_PAUSE, 0.0

    def allows(self) -> bool:
        """Whether to ask now. While it is half open only the first who comes may; if it never answers, another."""
        if self.state is BreakerState.CLOSED:
            return True
        if self._clock() < self._try_at:
            return False
        self._try_at = self._clock() + self._pause
        self._become(BreakerState.HALF_OPEN)
        return True

    def succeeded(self) -> None:
        self._failures, self._pause = 0, FIRST_PAUSE
        self._become(BreakerState.CLOSED)

    def failed(self) -> None:
        self._failures += 1
        if self.state is BreakerState.HALF_OPEN:
            self._pause = min(self._pause * 2, LONGEST_PAUSE)
        if self.state is BreakerState.HALF_OPEN or self._failures >= THRESHOLD:
            self._try_at = self._clock() + self._pause
            self._become(BreakerState.OPEN)

    def _become(self, state: BreakerState) -> None:
        if state is not self.state:
            self.state = state
            self._emit(BreakerChanged(state=state))
