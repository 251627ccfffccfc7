"""The checks of the outbox while it runs: what the doctor would find is told once, when it begins."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.observe.events.outbox import OutboxFinding
from interlock.outbox.doctor import examine

if TYPE_CHECKING:
    from interlock.observe.bus import Emit
    from interlock.outbox.settings import OutboxSettings
    from interlock.runtime.clock import Clock
    from interlock.store.database import Database

INTERVAL = timedelta(minutes=1)
WINDOW = timedelta(hours=1)


class OutboxWatch:
    """Every server that delivers watches for itself, because each may be the one that is left."""

    name = "outbox watch"

    def __init__(self, database: Database, settings: OutboxSettings, *, emit: Emit, clock: Clock) -> None:
        self._database, self._settings, self._emit, self._clock = database, settings, emit, clock
        self._known: set[tuple[str, str]] = set()
        self._settled_in = False

    async def tick(self) -> timedelta:
        """Not at once: while a fleet starts, workers are missing and old messages wait."""
        if self._settled_in:
            await self.look()
        self._settled_in = True
        return INTERVAL

    async def look(self) -> None:
        expected, now = self._settings.outbox_expected_workers, self._clock.injected()
        findings = await examine(self._database, window=WINDOW, expected_workers=expected, now=now)
        for finding in findings:
            if (finding.check, finding.place) not in self._known:
                self._emit(
                    OutboxFinding(check=finding.check, place=finding.place, found=finding.found, advice=finding.advice)
                )
        self._known = {(finding.check, finding.place) for finding in findings}
