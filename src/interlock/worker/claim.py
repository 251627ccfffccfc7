"""Claim: how the slots of a worker are filled, by itself or by the dispatcher of the same server.

The dispatcher fills free slots directly; jobs that any worker may take are claimed, and come first. One of the two at a
time: whoever is not served is called as soon as the other is done. An answer that was lost with the connection is
looked up by its token before anything else, so that nothing stays held that nobody runs. Where nothing is found it is
looked up again for a while: a statement whose client is gone goes on, and may be committed after the first look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock import failpoints
from interlock.runtime.doubts import Doubts
from interlock.runtime.loop import IMMEDIATELY
from interlock.store.background_job import BackgroundJobs
from interlock.store.line import Line
from interlock.worker.filling import Filling

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from uuid import UUID

    from interlock.model.execution import Claim, Reservation
    from interlock.runtime.clock import Clock
    from interlock.store.database import Database
    from interlock.worker.slots import Slots


class Claiming:
    """`take` gets what was claimed; `hand_on` what was found so late that its slots have gone to others; `offer` is
    called when the dispatcher, which got nothing before, may try again.
    """

    def __init__(
        self,
        database: Database,
        slots: Slots,
        *,
        server: Callable[[], UUID | None],
        host: str,
        clock: Clock,
        interval: timedelta,
        take: Callable[[list[Claim], Reservation], None],
        hand_on: Callable[[list[Claim], Reservation], None],
        offer: Callable[[], None],
    ) -> None:
        self._slots, self._server, self._clock, self._interval = slots, server, clock, interval
        self._filling = Filling(slots, server=server, host=host)
        self._line, self._jobs = Line(database, "worker claim", by_key=True), BackgroundJobs(database.sql)
        self._take, self._hand_on, self._offer = take, hand_on, offer
        self._doubts: Doubts[Reservation] = Doubts()
        self.is_next = self._dispatch_is_next = False
        self.may_get_more = True

    @property
    def in_flight(self) -> bool:
        """Whether an answer is still to be expected."""
        return self._filling.in_flight

    def reserve(self, ahead: int) -> Reservation | None:
        """Room for the dispatcher of this server to fill."""
        # Where jobs wait to be claimed nothing stands by: it would get every slot before them.
        reservation = self._filling.reserve(0 if self.may_get_more else ahead)
        self._dispatch_is_next = reservation is None
        return reservation

    def answered(self) -> None:
        self._filling.answered()

    def unsure(self) -> None:
        """The dispatch to the reserved slots may have happened, its answer is lost."""
        self._filling.unsure()

    async def tick(self) -> timedelta:
        """Claim as many jobs as there are free slots."""
        await self.recall()
        await self._look_again()
        if self._filling.in_flight:
            self.is_next = True
            return self._interval
        full = await self._claim_all()
        if self._dispatch_is_next:
            self._offer()
        return IMMEDIATELY if full and self._slots.free else self._interval

    async def recall(self) -> None:
        """Take up what a claim or a dispatch got whose answer never came."""
        reservation = self._filling.unanswered
        if reservation is None:
            return
        async with self._line.connection() as conn:
            claims = await self._jobs.recall(conn, server=reservation.server, token=reservation.token)
        self._filling.answered()
        self._take(claims, reservation)
        self._dispatch_is_next = True
        if not claims:
            self._doubts.add(reservation)

    async def _look_again(self) -> None:
        """Whether what was not there is there now."""
        due = self._doubts.due()
        if not due:
            return
        async with self._line.connection() as conn:
            for reservation in due:
                claims = await self._jobs.recall(conn, server=reservation.server, token=reservation.token)
                if claims:
                    self._doubts.found(reservation)
                    self._hand_on(claims, reservation)

    async def close(self) -> None:
        await self._line.close()

    async def _claim_all(self) -> bool:
        """Whether a claim got all it asked for, so that there may be more."""
        full = asked = False
        for trains, limit in self._slots.claimable():
            reservation = self._filling.reserve()
            if reservation is None:
                break
            asked, full = True, await self._claim(reservation, trains, limit) == limit or full
        # While nothing waits to be claimed a freed slot is the dispatcher's alone.
        self.may_get_more = full or not asked or self._slots.has_limits
        return full

    async def _claim(self, reservation: Reservation, trains: list[str], limit: int) -> int:
        server, host, token, _ = reservation
        try:
            async with self._line.connection() as conn:
                claims = await self._jobs.claim(
                    conn,
                    trains=trains,
                    limit=limit,
                    server=server,
                    host=host,
                    token=token,
                    now=self._clock.injected(),
                )
            await failpoints.reach("worker.claimed")
        except BaseException:
            self._filling.unsure()
            raise
        self._filling.answered()
        self._take(claims, reservation)
        return len(claims)
