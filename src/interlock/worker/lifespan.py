"""The resources of an app as a part of its server: open before the worker claims, closed after its last job.

One task opens and closes them, because much of what is opened with `async with` must be closed by the task that opened
it. A resource that ends by itself, or cannot be opened, ends the server with its error.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.worker.hooks import Hooks
    from interlock.worker.resource import Resource


class LifespanComponent:
    name = "resources"

    def __init__(self, resources: Sequence[Resource[Any]], hooks: Hooks) -> None:
        self._resources, self._hooks = resources, hooks
        self._open, self._unneeded = asyncio.Event(), asyncio.Event()
        self._holding: asyncio.Task[None] | None = None

    async def start(self) -> None:
        holding = self._holding = asyncio.create_task(self._hold(), name=self.name)
        opening = asyncio.create_task(self._open.wait())
        try:
            await asyncio.wait({holding, opening}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            holding.cancel()
            await asyncio.wait({holding})
            raise
        finally:
            opening.cancel()
        if holding.done():
            holding.result()

    async def run(self) -> None:
        if self._holding is not None:
            await self._holding

    def stop(self) -> None:
        self._unneeded.set()

    async def _hold(self) -> None:
        async with AsyncExitStack() as stack:
            for resource in self._resources:
                await stack.enter_async_context(resource.opened())
            stack.push_async_callback(self._hooks.aclose)
            self._open.set()
            await self._unneeded.wait()
            await self._hooks.finished()
