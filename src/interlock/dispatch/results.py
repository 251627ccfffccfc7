"""Waiting for the end of work: notices carry latency, polling carries the guarantee.

A process that waits listens on a connection of its own, opened by the first wait and kept until the app closes.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from contextvars import Context
from typing import TYPE_CHECKING

from interlock.runtime.loop import Loop
from interlock.store.listen import NoticeHub

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interlock.observe.bus import Emit
    from interlock.store.database import Database

TOPIC = "ended"
CLOSING = 2.0


class Endings:
    """The waits of one event loop, by the first entry of what they wait for."""

    def __init__(self, database: Database, *, emit: Emit) -> None:
        self._hub = NoticeHub(database, emit=emit)
        self._loop = Loop("results", self._hub.tick, emit=emit)
        self._hub.wake_with(self._loop.wake)
        self._hub.subscribe(TOPIC, self._noticed)
        self._waits: dict[int, set[asyncio.Event]] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watching(self, first_entry_id: int) -> Iterator[asyncio.Event]:
        """An event that is set whenever the work may have ended."""
        if self._task is None:
            # Not in the context of the train that waited first: the task outlives it.
            self._task = asyncio.create_task(self._loop.run(), name="results", context=Context())
        waits, event = self._waits.setdefault(first_entry_id, set()), asyncio.Event()
        waits.add(event)
        try:
            yield event
        finally:
            waits.discard(event)
            if not waits:
                self._waits.pop(first_entry_id, None)

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is None:
            return
        self._loop.stop()
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(task, CLOSING)
        finally:
            await self._hub.close()

    def _noticed(self, detail: str) -> None:
        ids = [int(one) for one in detail.split(",")] if detail else list(self._waits)
        for first_entry_id in ids:
            for event in self._waits.get(first_entry_id, ()):
                event.set()
