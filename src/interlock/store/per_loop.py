"""Connections belong to the event loop that opened them; this keeps a set of them for each."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")
PATIENCE = 6.0  # seconds that another event loop has to close its own; it may be blocked by whoever waits for us
_inherited: list[object] = []


class PerLoop(Generic[T]):
    """One thing per event loop, made on first use; what came through a fork is kept aside untouched."""

    def __init__(self, make: Callable[[], T], close: Callable[[T], Awaitable[None]]) -> None:
        self._make, self._close = make, close
        self._things: dict[asyncio.AbstractEventLoop, T] = {}
        self._pid = os.getpid()

    def get(self) -> T:
        if self._pid != os.getpid():
            _inherited.append(self._things)
            self._things, self._pid = {}, os.getpid()
        loop = asyncio.get_running_loop()
        thing = self._things.get(loop)
        if thing is None:
            self._drop_those_of_closed_loops()
            thing = self._things[loop] = self._make()
        return thing

    def discard(self, thing: T) -> None:
        """The next to ask in this event loop gets a new one."""
        loop = asyncio.get_running_loop()
        if self._things.get(loop) is thing:
            del self._things[loop]

    async def close(self) -> None:
        """Close those of this event loop and of every other one that still runs."""
        if self._pid != os.getpid():
            return
        things, self._things = self._things, {}
        await asyncio.gather(*(self._close_in(loop, thing) for loop, thing in things.items()))

    def _drop_those_of_closed_loops(self) -> None:
        """A closed event loop cannot close them; let go of, their sockets close when they are collected."""
        for loop in tuple(self._things):
            if loop.is_closed():
                self._things.pop(loop, None)

    async def _close_in(self, loop: asyncio.AbstractEventLoop, thing: T) -> None:
        async def close() -> None:
            with suppress(Exception):
                await self._close(thing)

        if loop is asyncio.get_running_loop():
            await close()
        elif loop.is_running():
            with suppress(RuntimeError):  # it has ended by now
                there = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(close(), loop))
                await asyncio.wait({there}, timeout=PATIENCE)  # that loop may end and cancel it, which is not our end
