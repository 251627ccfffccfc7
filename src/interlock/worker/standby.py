"""One batch ahead: jobs that are held already and begin as soon as slots get free.

A dispatch takes longer than a short body, and slots that wait for it do nothing. So the dispatcher may bring more than
there are free slots: as many as begin within a moment at the pace of now, and none where bodies take their time. What
has not begun before patience ends, because a body took longer than those before it, is not kept from other servers.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from interlock.worker.job import Job

MOST = 500
"""How many stand by at the fastest pace; more would make no batch cheaper."""
SOON = 0.01
"""Seconds within which a job that is held is expected to begin."""
PATIENCE = 0.1
"""Seconds after which one that has not begun goes where any worker may claim it."""


class Standby:
    """`pass_on` gets those for which patience ended."""

    def __init__(self, pass_on: Callable[[list[Job]], None]) -> None:
        self._pass_on = pass_on
        self._jobs: deque[Job] = deque()
        self._patience: asyncio.TimerHandle | None = None
        self._since, self._ended = time.monotonic(), 0

    def __bool__(self) -> bool:
        return bool(self._jobs)

    @property
    def room(self) -> int:
        """How many may be brought beyond the free slots; nothing while others still stand by."""
        if self._jobs or not self._ended:
            return 0
        return min(MOST, int(self._ended * SOON / max(time.monotonic() - self._since, 1e-6)))

    def filled(self, jobs: Iterable[Job]) -> None:
        """Slots were filled, these are left; from now on the pace is taken anew."""
        self._since, self._ended = time.monotonic(), 0
        self._jobs.extend(jobs)
        if self._jobs and self._patience is None:
            self._patience = asyncio.get_running_loop().call_later(PATIENCE, self._give_up)

    def following(self) -> Job | None:
        """A body has ended: the job that gets its slot."""
        self._ended += 1
        if not self._jobs:
            return None
        job = self._jobs.popleft()
        if not self._jobs:
            self._forget_patience()
        return job

    def dismiss(self) -> list[Job]:
        """All that did not begin, for whoever hands it back."""
        self._forget_patience()
        jobs = list(self._jobs)
        self._jobs.clear()
        return jobs

    def _give_up(self) -> None:
        self._pass_on(self.dismiss())

    def _forget_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
