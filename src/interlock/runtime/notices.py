from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.runtime.loop import Alarm, Loop

if TYPE_CHECKING:
    from interlock.observe.bus import Emit
    from interlock.store.listen import NoticeHub
    from interlock.store.notify import Notifier


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


class NotifierComponent:
    """Sends what still waits when the server stops; started before, and so stopped after, those who notify."""

    name = "notifier"

    def __init__(self, notifier: Notifier) -> None:
        self._notifier, self._stopped = notifier, Alarm()

    async def start(self) -> None:
        """The first notice opens what it needs."""

    async def run(self) -> None:
        try:
            await self._stopped.wait()
        finally:
            await self._notifier.close()

    def stop(self) -> None:
        self._stopped.set()
