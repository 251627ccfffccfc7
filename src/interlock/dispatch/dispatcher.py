"""The JobDispatcher: the single gateway between the work queue and whoever runs it.

Every server dispatches for its own worker, all at once: the trains it knows, up to its free slots, less what already
waits to be claimed. So nothing is dispatched further ahead than somebody can run it, and priorities, switches and caps
keep their effect on what waits. A tick is one READ COMMITTED transaction: it dispatches what it chose, or nothing.
Where no cap is to be counted it is one statement.

Trains that are routed elsewhere are left out; a dispatcher with `remote` routes submits them.

With `direct` hands the slots are reserved first, and the worker holds what is dispatched from the moment it exists; how
much may stand by for slots that are free in a moment is for the worker to say.
Without them up to one batch more is offered to whoever claims it.
"""

from __future__ import annotations

import random as random_numbers
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from interlock import failpoints
from interlock.dispatch.dispatch_jobs import HandOver, dispatch_jobs, dispatch_one_by_one
from interlock.dispatch.room import Ahead, claimable, room_by_count, room_by_estimate, room_in_slots
from interlock.dispatch.select import select
from interlock.dispatch.submit import RemoteDispatch
from interlock.observe.events.work import DispatchTicked, EntryRefused, WorkDispatched
from interlock.runtime.clock import DatabaseClock
from interlock.runtime.loop import IMMEDIATELY
from interlock.store.dispatching import Dispatching
from interlock.store.fault import is_passing
from interlock.store.line import Line
from interlock.store.taking import Taking

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from uuid import UUID

    from interlock.dispatch.apply_capacity_limits import Skipped
    from interlock.dispatch.dispatch_jobs import Unfit
    from interlock.dispatch.room import DirectHands, Hands, Room
    from interlock.dispatch.select import Selection
    from interlock.dispatch.settings import DispatchSettings
    from interlock.dispatch.submitters.protocol import LocalSubmitter, Route
    from interlock.model.execution import Claim, Reservation
    from interlock.model.work import Dispatched
    from interlock.observe.bus import Emit
    from interlock.observe.events.base import Event
    from interlock.runtime.clock import Clock
    from interlock.store.connection import Connection
    from interlock.store.database import Database
    from interlock.store.dispatching import Survey

READY_BATCH = 1000
SHORTEST_SLEEP = timedelta(milliseconds=5)
CONTENDED_PAUSE = timedelta(milliseconds=10)
UNTIL_REGISTERED = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchCycle:
    """What one tick did, and how long to sleep now."""

    sleep: timedelta
    dispatched: Sequence[Dispatched] = ()
    skipped: Sequence[Skipped] = ()
    lost: int = 0
    refused: int = 0
    submitted: int = 0
    failed_submits: int = 0


@dataclass(slots=True)
class _Findings:
    """What the transaction did, to be told once it is committed."""

    selection: Selection | None = None
    dispatched: Sequence[Dispatched] = ()
    unfit: Sequence[Unfit] = ()
    more_ready: bool = False
    until_ready: timedelta | None = None
    claims: list[Claim] = field(default_factory=list)
    lost: int = 0
    waiting: int = 0
    alive: bool = True


class JobDispatcher:
    name = "dispatch"

    def __init__(
        self,
        database: Database,
        settings: DispatchSettings,
        *,
        hands: Hands,
        local: LocalSubmitter,
        emit: Emit,
        direct: DirectHands | None = None,
        server: Callable[[], UUID | None] = lambda: None,
        remote: Sequence[Route] = (),
        elsewhere: Collection[str] = (),
        clock: Clock | None = None,
        random: Callable[[], float] = random_numbers.random,
        watched: Callable[[type[Event]], bool] = lambda _: True,
    ) -> None:
        self._database, self._settings, self._random = database, settings, random
        self._emit, self._watched = emit, watched
        self._hands, self._local, self._capped = hands, local, settings.max_active_jobs is not None
        self._clock, self._ahead, self._direct = clock or DatabaseClock(), Ahead(hands), direct
        self._dispatching, self._taking = Dispatching(database.sql), Taking(database.sql)
        self._line = Line(database, "dispatch", by_key=True)
        self._routed = frozenset(elsewhere).union(*(route.trains for route in remote))
        self._remote = [
            RemoteDispatch(database, settings, route, server=server, emit=emit, clock=self._clock) for route in remote
        ]

    @property
    def is_capped(self) -> bool:
        """Whether others may wait for capacity that is freed here; as of the last tick."""
        return self._capped or self._settings.max_active_jobs is not None

    @property
    def has_enough(self) -> bool:
        """Whether the worker has so much to claim that a freed slot is no reason to dispatch."""
        return self._ahead.is_enough(self._settings.max_queued_jobs_per_cycle)

    def freed_elsewhere(self) -> bool:
        """A runner has room, or something ended there: answers whether a tick is of use."""
        waited = [remote.has_room() for remote in self._remote]
        return any(waited) or self.is_capped

    def stop(self) -> None:
        """Let a cycle that submits elsewhere end early."""
        for remote in self._remote:
            remote.stop()

    async def close(self) -> None:
        """Let go of the connections that the ticks share."""
        await self._line.close()
        for remote in self._remote:
            await remote.close()

    async def tick(self) -> DispatchCycle:
        began = time.monotonic()
        findings = await (self._offer() if self._direct is None else self._fill(self._direct))
        submitted = [await remote.cycle() for remote in self._remote]
        cycle = DispatchCycle(
            sleep=min(
                [
                    self._sleep(findings, contended=any(each.contended for each in submitted)),
                    *(each.wait for each in submitted if each.wait is not None),
                ]
            ),
            dispatched=findings.dispatched,
            skipped=findings.selection.verdict.skipped if findings.selection else (),
            lost=findings.lost,
            refused=len(findings.unfit),
            submitted=sum(each.taken for each in submitted),
            failed_submits=sum(each.failed for each in submitted),
        )
        self._report(cycle, findings.unfit, took=timedelta(seconds=time.monotonic() - began))
        return cycle

    async def _offer(self) -> _Findings:
        """Dispatch to whoever claims it."""
        findings = await self._dispatch_isolated(None)
        if findings.dispatched:
            self._ahead.dispatched(len(findings.dispatched))
            await self._local.committed(findings.dispatched)
        return findings

    async def _fill(self, direct: DirectHands) -> _Findings:
        """Dispatch to free slots of this server's worker; it is called again as soon as there are some."""
        reservation = direct.reserve()
        if reservation is None:
            return _Findings()
        try:
            findings = await self._dispatch_at_once(reservation)
            await failpoints.reach("dispatch.committed")
        except BaseException:
            direct.unsure()
            raise
        direct.take_up(reservation, findings.claims)
        if findings.waiting:
            direct.wake()
        return findings

    async def _dispatch_at_once(self, reservation: Reservation) -> _Findings:
        """In one statement where that is possible, else step by step."""
        if self.is_capped or self._hands.has_limits:
            return await self._dispatch_isolated(reservation)
        now = self._clock.injected()
        try:
            async with self._line.connection() as conn:
                taken, alive, self._capped, due, waiting, lost = await self._taking.attempt(
                    conn, self._trains(), reservation, now=now
                )
                found = _Findings(
                    claims=taken.claims, dispatched=taken.dispatched, lost=lost, waiting=waiting, alive=alive
                )
                if not taken.claims and not due and not self._capped:
                    found.until_ready = await self._dispatching.time_to_next_ready(conn, now=now)
        except Exception as error:
            if is_passing(error):
                raise
            return await self._dispatch(reservation, one_by_one=True)
        return await self._dispatch_isolated(reservation) if alive and (due or self._capped) else found

    async def _dispatch_isolated(self, reservation: Reservation | None) -> _Findings:
        """The tick; if the data of one entry breaks it, once more entry by entry."""
        try:
            return await self._dispatch(reservation, one_by_one=False)
        except Exception as error:
            if is_passing(error):
                raise
            return await self._dispatch(reservation, one_by_one=True)

    async def _dispatch(self, reservation: Reservation | None, *, one_by_one: bool) -> _Findings:
        async with self._line.connection() as conn, self._database.tick_on(conn, by_index=True):
            findings = await self._cycle(conn, reservation, one_by_one=one_by_one)
            await failpoints.reach("dispatch.before_commit")
        return findings

    async def _cycle(self, conn: Connection, reservation: Reservation | None, *, one_by_one: bool) -> _Findings:
        now = self._clock.injected()
        ready = await self._dispatching.make_ready(conn, limit=READY_BATCH, now=now)
        found = _Findings(more_ready=ready == READY_BATCH)
        survey, room = await self._look_around(conn, found, reservation)
        self._capped = survey.capped
        if survey.lanes and room.total > 0:
            found.selection = await select(conn, self._dispatching, survey.lanes, self._settings, room)
            found.lost = found.selection.lost
            hand_over = HandOver(conn, self._dispatching, self._taking, reservation, now)
            await self._dispatch_chosen(hand_over, found, one_by_one=one_by_one)
        if not found.dispatched:
            # Whoever dispatched something looks again at once, and asks then: it would cost this work a round trip.
            found.until_ready = await self._dispatching.time_to_next_ready(conn, now=now)
        return found

    async def _look_around(
        self, conn: Connection, found: _Findings, reservation: Reservation | None
    ) -> tuple[Survey, Room]:
        """What waits in the queue, and how much of it this server can take."""
        limit = self._settings.max_queued_jobs_per_cycle
        room = None if reservation else room_by_estimate(self._hands, self._ahead.unclaimed, limit=limit)
        survey = await self._dispatching.survey(conn, self._trains(), count_waiting=room is None)
        if room is not None:
            return survey, room
        waiting = survey.waiting or {}
        if reservation is not None:
            found.waiting = claimable(self._hands, waiting)
            return survey, room_in_slots(self._hands, waiting, slots=reservation.room)
        self._ahead.counted(claimable(self._hands, waiting))
        return survey, room_by_count(self._hands, waiting, limit=limit)

    async def _dispatch_chosen(self, hand_over: HandOver, found: _Findings, *, one_by_one: bool) -> None:
        chosen = found.selection.verdict.chosen if found.selection else []
        if one_by_one:
            found.unfit = await dispatch_one_by_one(hand_over, self._database.sql, chosen)
        else:
            await dispatch_jobs(hand_over, chosen)
        found.dispatched, found.claims = hand_over.dispatched, hand_over.claims

    def _trains(self) -> list[str]:
        return [name for name in self._hands.trains if name not in self._routed]

    def _sleep(self, findings: _Findings, *, contended: bool) -> timedelta:
        """At once while the worker wants more; in a moment where another dispatcher was faster; else until a notice."""
        selection = findings.selection
        if findings.more_ready or (findings.dispatched and not self.has_enough):
            return IMMEDIATELY
        if contended or findings.lost or findings.waiting or (selection is not None and selection.contended):
            return CONTENDED_PAUSE * self._random()
        longest = self._settings.job_dispatcher_polling_interval
        if not findings.alive:
            return min(longest, UNTIL_REGISTERED)
        ahead = findings.until_ready
        return longest if ahead is None else max(SHORTEST_SLEEP, min(ahead, longest))

    def _report(self, cycle: DispatchCycle, unfit: Sequence[Unfit], *, took: timedelta) -> None:
        for done in cycle.dispatched if self._watched(WorkDispatched) else ():
            self._emit(
                WorkDispatched(
                    execution_id=done.execution_id,
                    train=done.train,
                    manifest=done.manifest,
                    attempt=done.attempt,
                    entry_id=done.entry_id,
                )
            )
        for each in unfit:
            self._emit(EntryRefused(entry_id=each.entry_id, train=each.refused.train, error=each.error))
        if cycle.dispatched or cycle.lost or cycle.skipped:
            self._emit(
                DispatchTicked(dispatched=len(cycle.dispatched), skipped=len(cycle.skipped), lost=cycle.lost, took=took)
            )
