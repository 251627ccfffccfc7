from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.runtime.loop import Loop

if TYPE_CHECKING:
    from interlock.observe.bus import Emit
    from interlock.store.listen import NoticeHub


class NoticeComponent:
    """Runs the hub, and closes its connection at the end."""

    def __init__(self, hub: NoticeHub, *, emit: Emit) -> None:
        self.name, self._hub = hub.name, hub
        self._loop = Loop(hub.name, hub.tick, emit=emit)
        hub.wake_with(self._loop.wake)

    async def start(self) -> None:
        """The first tick connects: a server may start while notices are not to be had."""

    async def run(self) -> None:
        try:
            await self._loop.run()
        finally:
            await self._hub.close()

    def stop(self) -> None:
        self._loop.stop()
