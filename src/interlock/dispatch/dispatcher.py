"""The JobDispatcher: the single gateway between the work queue and whoever runs it.

Every server dispatches for its own worker, all at once: the trains it knows, up to its free slots and one batch, less
what already waits to be claimed. So nothing is dispatched further ahead than somebody can run it, and priorities,
switches and caps keep their effect on what waits. A tick is one READ COMMITTED transaction: it dispatches what it
chose, or nothing.
"""

from __future__ import annotations

import random as random_numbers
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from interlock import failpoints
from interlock.dispatch.dispatch_jobs import dispatch_jobs, dispatch_one_by_one
from interlock.dispatch.room import Ahead, claimable, room_by_count, room_by_estimate
from interlock.dispatch.select import select
from interlock.dispatch.submit import RemoteDispatch
from interlock.observe.events.work import DispatchTicked, EntryRefused, WorkDispatched
from interlock.runtime.clock import DatabaseClock
from interlock.runtime.loop import IMMEDIATELY
from interlock.store.dispatching import Dispatching
from interlock.store.fault import is_passing
from interlock.store.line import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from interlock.dispatch.apply_capacity_limits import Skipped
    from interlock.dispatch.dispatch_jobs import Unfit
    from interlock.dispatch.room import Hands
    from interlock.dispatch.select import Selection
    from interlock.dispatch.settings import DispatchSettings
    from interlock.dispatch.submitters.protocol import LocalSubmitter, Submitter
    from interlock.model.work import Dispatched
    from interlock.observe.bus import Emit
    from interlock.observe.events.base import Event
    from interlock.runtime.clock import Clock
    from interlock.store.connection import Connection
    from interlock.store.database import Database

READY_BATCH = 1000
SHORTEST_SLEEP = timedelta(milliseconds=5)
CONTENDED_PAUSE = timedelta(milliseconds=10)


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
        server: Callable[[], UUID | None] = lambda: None,
        remote: Sequence[Submitter] = (),
        clock: Clock | None = None,
        random: Callable[[], float] = random_numbers.random,
        watched: Callable[[type[Event]], bool] = lambda _: True,
    ) -> None:
        self._database, self._settings, self._random = database, settings, random
        self._emit, self._watched = emit, watched
        self._hands, self._local, self._capped = hands, local, settings.max_active_jobs is not None
        self._clock, self._ahead = clock or DatabaseClock(), Ahead(hands)
        self._dispatching, self._line = Dispatching(database.sql), Line(database, "dispatch")
        self._routed = frozenset(train for submitter in remote for train in submitter.trains)
        self._remote = [
            RemoteDispatch(database, settings, submitter, server=server, emit=emit, clock=self._clock)
            for submitter in remote
        ]

    async def run(self) -> timedelta:
        """One tick, for the loop: answers how long to sleep."""
        return (await self.tick()).sleep

    @property
    def is_capped(self) -> bool:
        """Whether others may wait for capacity that is freed here; as of the last tick."""
        return self._capped or self._settings.max_active_jobs is not None

    @property
    def has_enough(self) -> bool:
        """Whether the worker has so much to claim that a freed slot is no reason to dispatch."""
        return self._ahead.is_enough(self._settings.max_queued_jobs_per_cycle)

    async def close(self) -> None:
        """Let go of the connection that the ticks share."""
        await self._line.close()

    async def tick(self) -> DispatchCycle:
        began = time.monotonic()
        findings = await self._dispatch_isolated()
        if findings.dispatched:
            self._ahead.dispatched(len(findings.dispatched))
            await self._local.committed(findings.dispatched)
        submitted = [await remote.cycle() for remote in self._remote]
        cycle = DispatchCycle(
            sleep=self._sleep(findings, contended=any(each.contended for each in submitted)),
            dispatched=findings.dispatched,
            skipped=findings.selection.verdict.skipped if findings.selection else (),
            lost=findings.selection.lost if findings.selection else 0,
            refused=len(findings.unfit),
            submitted=sum(each.taken for each in submitted),
            failed_submits=sum(each.failed for each in submitted),
        )
        self._report(cycle, findings.unfit, took=timedelta(seconds=time.monotonic() - began))
        return cycle

    async def _dispatch_isolated(self) -> _Findings:
        """The tick; if the data of one entry breaks it, once more entry by entry."""
        try:
            return await self._dispatch(one_by_one=False)
        except Exception as error:
            if is_passing(error):
                raise
            return await self._dispatch(one_by_one=True)

    async def _dispatch(self, *, one_by_one: bool) -> _Findings:
        async with self._line.connection() as conn, self._database.tick_on(conn, by_index=True):
            findings = await self._cycle(conn, one_by_one=one_by_one)
            await failpoints.reach("dispatch.before_commit")
        return findings

    async def _cycle(self, conn: Connection, *, one_by_one: bool) -> _Findings:
        now, limit = self._clock.injected(), self._settings.max_queued_jobs_per_cycle
        ready = await self._dispatching.make_ready(conn, limit=READY_BATCH, now=now)
        trains = [name for name in self._hands.trains if name not in self._routed]
        room = room_by_estimate(self._hands, self._ahead.unclaimed, limit=limit)
        survey = await self._dispatching.survey(conn, trains, count_waiting=room is None)
        self._capped = survey.capped
        if room is None:
            waiting = survey.waiting or {}
            self._ahead.counted(claimable(self._hands, waiting))
            room = room_by_count(self._hands, waiting, limit=limit)
        found = _Findings(more_ready=ready == READY_BATCH)
        if survey.lanes and room.total > 0:
            found.selection = await select(conn, self._dispatching, survey.lanes, self._settings, room)
            await self._dispatch_chosen(conn, found, one_by_one=one_by_one)
        if not found.dispatched:
            # Whoever dispatched something looks again at once, and asks then: it would cost this work a round trip.
            found.until_ready = await self._dispatching.time_to_next_ready(conn, now=now)
        return found

    async def _dispatch_chosen(self, conn: Connection, found: _Findings, *, one_by_one: bool) -> None:
        chosen, now = found.selection.verdict.chosen if found.selection else [], self._clock.injected()
        if one_by_one:
            found.dispatched, found.unfit = await dispatch_one_by_one(
                conn, self._dispatching, self._database.sql, chosen, now=now
            )
        else:
            found.dispatched = await dispatch_jobs(conn, self._dispatching, chosen, now=now)

    def _sleep(self, findings: _Findings, *, contended: bool) -> timedelta:
        """At once while the worker wants more; in a moment where another dispatcher was faster; else until a notice."""
        selection = findings.selection
        if findings.more_ready or (findings.dispatched and not self.has_enough):
            return IMMEDIATELY
        if contended or (selection is not None and (selection.contended or selection.lost)):
            return CONTENDED_PAUSE * self._random()
        longest = self._settings.job_dispatcher_polling_interval
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
