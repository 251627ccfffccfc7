"""Settle: how deliveries ended is written in batches, away from the emitters.

Outcomes gather for a few milliseconds and share one commit. A batch that the data of one of its members breaks is
written one by one. While the database is away they wait here; each is refused by itself if the message belongs to
another by then.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING

from interlock import failpoints
from interlock.model.message import Answer, Settling
from interlock.observe.events.outbox import SettlingFailed
from interlock.runtime.loop import LoopBackoff
from interlock.store.fault import is_passing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from interlock.model.message import Settlement
    from interlock.observe.bus import Emit
    from interlock.outbox.held import Held
    from interlock.outbox.store import MessageStore

    Report = Callable[[Held, Settlement, Answer], None]

LARGEST_BATCH = 500
ENOUGH = 50  # so many outcomes are worth a commit without waiting for more
WINDOW = timedelta(milliseconds=2)
BACKOFF = LoopBackoff()


class Settler:
    def __init__(self, store: MessageStore, report: Report, *, emit: Emit, window: timedelta = WINDOW) -> None:
        self._store, self._report, self._emit = store, report, emit
        self._window = window.total_seconds()
        self._waiting: deque[tuple[Held, Settlement]] = deque()
        self._in_hand = 0
        self._hurried = False
        self._writing: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """How many outcomes are not written yet."""
        return len(self._waiting) + self._in_hand

    def add(self, held: Held, settlement: Settlement) -> None:
        self._waiting.append((held, settlement))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_until_empty(), name="outbox settle")

    async def flush(self) -> None:
        """Write all that waits, without waiting for more; for as long as it takes."""
        self._hurried = True
        while self._writing is not None:
            await asyncio.shield(self._writing)
        self._hurried = False

    async def close(self) -> None:
        """Give up what is not written by now."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait({self._writing})

    async def _write_until_empty(self) -> None:
        try:
            while self._waiting:
                if len(self._waiting) < ENOUGH and not self._hurried:
                    await asyncio.sleep(self._window)
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), LARGEST_BATCH))]
                self._in_hand = len(batch)
                await self._write(batch)
                self._in_hand = 0
        finally:
            self._writing = None

    async def _write(self, batch: Sequence[tuple[Held, Settlement]]) -> None:
        failures = 0
        while True:
            try:
                answers = await self._store.settle([settlement for _, settlement in batch])
            except Exception as error:  # noqa: BLE001  an outcome is never dropped for an error that may pass
                if not is_passing(error):
                    await self._write_apart(batch, error)
                    return
                failures += 1
                self._emit(SettlingFailed(error=error, waiting=self.waiting, consecutive=failures))
                await asyncio.sleep(BACKOFF.pause(failures, random.random).total_seconds())
            else:
                await self._tell(batch, answers)
                return

    async def _write_apart(self, batch: Sequence[tuple[Held, Settlement]], error: Exception) -> None:
        if len(batch) > 1:
            for member in batch:
                await self._write([member])
            return
        [(held, settlement)] = batch
        if settlement.error_type == "Unstorable":
            self._emit(SettlingFailed(error=error, waiting=self.waiting))
            self._report(held, settlement, Answer.MISSING)
            return
        # What the emitter left behind cannot be stored: then that is its failure, in words that can be.
        plain = settlement._replace(
            outcome=Settling.RETRY,
            record_id=None,
            failure="error",
            error_type="Unstorable",
            error_message=f"its outcome could not be stored: {type(error).__name__}",
            delay=settlement.delay or timedelta(minutes=1),
        )
        await self._write([(held, plain)])

    async def _tell(self, batch: Sequence[tuple[Held, Settlement]], answers: Sequence[Answer]) -> None:
        for (held, settlement), answer in zip(batch, answers, strict=True):
            self._report(held, settlement, answer)
        await failpoints.reach("outbox.after_settle")
