"""One timer for all deadlines: it is set to the earliest, so a job costs none of its own."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from interlock.worker.job import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable

    from interlock.worker.slots import Slots


class Deadlines:
    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._timer: asyncio.TimerHandle | None = None
        self._armed_for = float("inf")

    def watch(self, deadlines: Iterable[float | None]) -> None:
        """Make sure that somebody looks when the earliest of these comes."""
        earliest = min((deadline for deadline in deadlines if deadline is not None), default=self._armed_for)
        if earliest < self._armed_for:
            self._arm(earliest)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._armed_for = None, float("inf")

    def _arm(self, deadline: float) -> None:
        self.close()
        self._armed_for = deadline
        self._timer = asyncio.get_running_loop().call_later(max(deadline - time.monotonic(), 0), self._look)

    def _look(self) -> None:
        self.close()
        now, jobs = time.monotonic(), list(self._slots.held.values())
        for job in jobs:
            if job.deadline is not None and job.deadline <= now:
                job.interrupt(Cause.TIMEOUT)
        self.watch(job.deadline for job in jobs if job.cause is None)
