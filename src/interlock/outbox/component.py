"""The drain as a part of a running server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from interlock.runtime.loop import Loop

if TYPE_CHECKING:
    from interlock.observe.bus import Emit
    from interlock.outbox.drain import Drain


class DrainComponent:
    """Woken by notices; a stop lets deliveries end, gives back what waits, and writes all outcomes."""

    def __init__(self, drain: Drain, *, emit: Emit) -> None:
        self.name, self._drain = drain.name, drain
        self._loop = Loop(drain.name, drain.tick, emit=emit)
        drain.wake = self._loop.wake

    def wake(self) -> None:
        self._loop.wake()

    def busy(self) -> int:
        return self._drain.in_hand

    async def start(self) -> None:
        """The first tick claims."""

    async def run(self) -> None:
        try:
            await self._loop.run()
            await self._drain.finish()
        finally:
            await asyncio.shield(self._end())

    def stop(self) -> None:
        self._drain.stop()
        self._loop.stop()

    async def _end(self) -> None:
        try:
            await self._drain.close()
        finally:
            await self._drain.abandon()
