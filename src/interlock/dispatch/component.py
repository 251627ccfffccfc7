"""The dispatcher as a part of a running server: a loop, the notices that wake it, and the connection it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.dispatch.dispatcher import JobDispatcher
from interlock.runtime.loop import Loop

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from interlock.observe.bus import Emit


class DispatchComponent:
    def __init__(
        self, dispatcher: JobDispatcher, *, emit: Emit, notify: Callable[[str], None], name: str = JobDispatcher.name
    ) -> None:
        self.name, self._dispatcher, self._notify = name, dispatcher, notify
        self._loop = Loop(name, self._tick, emit=emit)

    def wake(self) -> None:
        """There is new work; from any thread."""
        self._loop.wake()

    def freed(self) -> None:
        """Something ended here: this server has a slot, and whoever waits for a cap may have capacity."""
        if not self._loop.is_woken and not self._dispatcher.has_enough:
            self._loop.wake()
        self._tell_capped()

    def freed_elsewhere(self) -> None:
        """Something ended on a runner."""
        if self._dispatcher.freed_elsewhere():
            self._loop.wake()

    async def start(self) -> None:
        """The first tick opens what it needs."""

    async def run(self) -> None:
        try:
            await self._loop.run()
        finally:
            await self._dispatcher.close()

    def stop(self) -> None:
        self._loop.stop()
        self._dispatcher.stop()

    async def _tick(self) -> timedelta:
        cycle = await self._dispatcher.tick()
        if cycle.failed_submits:
            # Each has given its place back, and waits for longer than others would wait for that.
            self._tell_capped()
        return cycle.sleep

    def _tell_capped(self) -> None:
        if self._dispatcher.is_capped:
            self._notify("work:")
