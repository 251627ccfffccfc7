"""The clock that leases run out by, in this process."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

_DRIFT = 0.01  # two clocks may run apart; a hundredth covers far more than any crystal


# A machine that was suspended must find its leases run out, and the monotonic clock of Linux stands still meanwhile.
clock: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)


def deadline(asked: float, remaining: timedelta) -> float:
    """Until when a lease may be believed, counted from *before* the request was sent."""
    return asked + remaining.total_seconds() * (1 - _DRIFT)
