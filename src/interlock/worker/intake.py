"""How a runner gets its work: what is submitted to it goes straight into a free slot of its worker, or nowhere.

The message only names the execution; the row is what counts. Taking it over is one guarded write, so it makes no
difference how often, how late or in which order the same message arrives.
"""

from __future__ import annotations

import asyncio
from enum import Enum, auto
from typing import TYPE_CHECKING

from interlock import failpoints
from interlock.store.submitting import Submitting
from interlock.worker.slots import Slots

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interlock.model.execution import Reservation
    from interlock.model.posted import Posted
    from interlock.runtime.clock import Clock
    from interlock.store.database import Database
    from interlock.worker.worker import Worker

MOMENTS, MOMENT = 20, 0.005


class Answer(Enum):
    TAKEN = auto()
    NOTHING = auto()
    """It is gone, cancelled, or taken already."""
    BUSY = auto()
    AT_LIMIT = auto()
    """The train runs here as often as it may; others are taken."""
    UNKNOWN_TRAIN = auto()


class SubmittedOnly(Slots):
    """The slots of a worker that claims nothing by itself."""

    def claimable(self) -> Iterator[tuple[list[str], int]]:
        return iter(())


class Intake:
    def __init__(self, database: Database, worker: Worker, *, clock: Clock) -> None:
        self._database, self._worker, self._clock = database, worker, clock
        self._submitting = Submitting(database.sql)
        self._one_at_a_time = asyncio.Lock()

    async def take(self, posted: Posted) -> Answer:
        if posted.train not in self._worker.slots.trains:
            return Answer.UNKNOWN_TRAIN
        async with self._one_at_a_time:
            return await self._take(posted)

    async def _take(self, posted: Posted) -> Answer:
        reservation = await self._reserve(posted.train)
        if isinstance(reservation, Answer):
            return reservation
        try:
            async with self._database.connection() as conn:
                claims = await self._submitting.take_over_if_held(conn, posted, reservation, now=self._clock.injected())
            await failpoints.reach("runner.taken")
        except BaseException:
            self._worker.unsure()  # it may have been committed: the worker looks it up by its token
            raise
        self._worker.take_up(reservation, claims)
        return Answer.TAKEN if claims else Answer.NOTHING

    async def _reserve(self, train: str) -> Reservation | Answer:
        """A free slot. The worker's own loop has the word for a moment now and then: that is not busy."""
        for _ in range(MOMENTS):
            if (refusal := self._refusal(train)) is not None:
                return refusal
            if (reservation := self._worker.reserve()) is not None:
                return reservation
            await asyncio.sleep(MOMENT)
        return Answer.BUSY

    def _refusal(self, train: str) -> Answer | None:
        """Before its lifespan is open a worker runs nothing, and nothing more when it is told to stop."""
        slots = self._worker.slots
        if not (self._worker.is_taking and slots.free):
            return Answer.BUSY
        at_limit = any(train in names and left == 0 for names, left in slots.limits())
        return Answer.AT_LIMIT if at_limit else None
