"""What happened to a timer on this server since it was last written down."""

from __future__ import annotations

import time
from collections import Counter
from datetime import timedelta
from enum import StrEnum

from interlock.store.timer import TimerTotals


class Skip(StrEnum):
    """Why a timer did not run."""

    EXCLUDED_WINDOW = "excluded_window"
    LOCAL_CAP = "local_cap"
    LOCK_SERVICE_DOWN = "lock_service_down"
    SLOTS_HELD = "slots_held"
    TICK_TAKEN = "tick_taken"


class Counts:
    def __init__(self, timer: str) -> None:
        self._timer = timer
        self._runs = self._failures = 0
        self._last_run: float | None = None
        self._skips: Counter[str] = Counter()

    def ran(self) -> None:
        self._runs += 1
        self._last_run = time.monotonic()

    def failed(self) -> None:
        self._failures += 1

    def skipped(self, reason: Skip) -> None:
        self._skips[reason] += 1

    def any(self) -> bool:
        return bool(self._runs or self._failures or self._skips)

    def taken(self, *, lock_down: bool = False) -> TimerTotals:
        """The totals, which begin at zero again."""
        ago = None if self._last_run is None else timedelta(seconds=time.monotonic() - self._last_run)
        totals = TimerTotals(
            name=self._timer,
            runs=self._runs,
            failures=self._failures,
            last_run_ago=ago,
            skips=dict(self._skips),
            lock_down=lock_down,
        )
        self._runs = self._failures = 0
        self._last_run = None
        self._skips = Counter()
        return totals

    def put_back(self, totals: TimerTotals) -> None:
        """They could not be written down."""
        self._runs += totals.runs
        self._failures += totals.failures
        self._skips.update(totals.skips)
        if self._last_run is None and totals.last_run_ago is not None:
            self._last_run = time.monotonic() - totals.last_run_ago.total_seconds()
