"""The sweep: sets the markers that are missing, and counts them. In a healthy system there are none.

Whoever unblocks a manifest sets its marker in the same transaction, so this is a net, not a part of the mechanism: a
repair is a warning, because something else went wrong.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from interlock.observe.events.manifest import MarkersRepaired
from interlock.runtime.clock import DatabaseClock
from interlock.runtime.loop import IMMEDIATELY
from interlock.store.manifest import Manifests
from interlock.store.notify import notify_in

if TYPE_CHECKING:
    from interlock.observe.bus import Emit
    from interlock.runtime.clock import Clock
    from interlock.store.database import Database

INTERVAL = timedelta(minutes=1)
BATCH = 1000


class Swept(NamedTuple):
    """How many markers were missing and were set."""

    repaired: int = 0


class Sweep:
    name = "sweep"

    def __init__(self, database: Database, *, emit: Emit, clock: Clock | None = None) -> None:
        self.repaired = 0
        self._database, self._emit, self._clock = database, emit, clock or DatabaseClock()
        self._manifests = Manifests(database.sql)

    async def tick(self) -> timedelta:
        return IMMEDIATELY if (await self.step()).repaired == BATCH else INTERVAL

    async def step(self) -> Swept:
        """What a tick does; answers what it found."""
        async with self._database.tick() as conn:
            repaired = await self._manifests.sweep(conn, limit=BATCH, now=self._clock.injected())
            if repaired:
                await notify_in(conn, self._database, ["manifest:"])
        if repaired:
            self.repaired += len(repaired)
            self._emit(MarkersRepaired(count=len(repaired)))
        return Swept(len(repaired))
