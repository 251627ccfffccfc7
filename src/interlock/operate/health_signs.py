"""The vital signs of one server, for those who ask it itself.

They cost nothing: readiness looks at the lease, which the keeper renews over the database every few seconds, so a
database that is away, or a server that was marked lost, shows without a query.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from interlock.runtime.keeper import Keeper


class Sign(NamedTuple):
    good: bool
    detail: str


class VitalSigns:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self.started = self.stopping = False

    def live(self) -> Sign:
        """Bad only when nothing but a restart helps; that the event loop answers at all is half of it."""
        if self.started and not self.stopping and not self._keeper.lives_here():
            return Sign(good=False, detail="the thread that keeps the lease is gone")
        return Sign(good=True, detail="alive")

    def startup(self) -> Sign:
        return Sign(self.started, "started" if self.started else "starting")

    def ready(self) -> Sign:
        """Whether it takes work: started, not draining, and its lease holds."""
        if not self.started:
            return Sign(good=False, detail="starting")
        if self.stopping:
            return Sign(good=False, detail="draining")
        if self._keeper.server is None or self._keeper.remaining <= timedelta(0):
            return Sign(good=False, detail="it has no lease: the database does not answer, or it was marked lost")
        return Sign(good=True, detail="ready")


class SignsComponent:
    """Started last and stopped first, so it knows when everything else is up and when draining begins."""

    name = "vital signs"

    def __init__(self, signs: VitalSigns) -> None:
        self._signs = signs
        self._over = asyncio.Event()

    async def start(self) -> None:
        self._signs.started = True

    async def run(self) -> None:
        await self._over.wait()

    def stop(self) -> None:
        self._signs.stopping = True
        self._over.set()
