"""Work that runs elsewhere: claim no more than can be submitted at once, commit, then submit.

Until it is submitted an execution carries this server's lease, so nothing is lost with the server. A submit that failed
closes its execution and queues the entry again in one transaction. That is no failure of the train; after
`max_dispatch_attempts` of them the work is left to a person. Where there is no room the claim is undone: waiting is no
attempt. Either way the cycle ends there, and new work begins no other before a pause is over; but where only one train
has to wait, the others go on.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from interlock import failpoints
from interlock.dispatch.dispatch_jobs import ClaimForSubmit, dispatch_jobs, dispatch_one_by_one
from interlock.dispatch.pause import MOST_DOUBLINGS, Pauses
from interlock.dispatch.room import Room
from interlock.dispatch.select import select
from interlock.dispatch.submitters.protocol import NoRoom, Submission
from interlock.model.failure import kind_of, message_of
from interlock.model.lifecycle import ExecutionState
from interlock.model.outcome import SUBMIT_FAILED, Ending
from interlock.observe.events.work import EntryRefused, SubmitFailed
from interlock.runtime.doubts import Doubts
from interlock.store.dispatching import Dispatching
from interlock.store.execution import Executions
from interlock.store.fault import is_passing
from interlock.store.notify import notify_in
from interlock.store.submitting import Submitting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from interlock.dispatch.dispatch_jobs import Unfit
    from interlock.dispatch.select import Selection
    from interlock.dispatch.settings import DispatchSettings
    from interlock.dispatch.submitters.protocol import Route
    from interlock.observe.bus import Emit
    from interlock.runtime.clock import Clock
    from interlock.store.connection import Connection
    from interlock.store.database import Database
    from interlock.store.dispatching import Claimed

FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=2), timedelta(seconds=60)


class Verdict(Enum):
    TAKEN = auto()
    FAILED = auto()
    NO_ROOM = auto()
    NO_ROOM_FOR_TRAIN = auto()


ENDS_THE_CYCLE, UNTAKEN = {Verdict.FAILED, Verdict.NO_ROOM}, {Verdict.NO_ROOM, Verdict.NO_ROOM_FOR_TRAIN}


class Submitted(NamedTuple):
    """What one cycle did; `wait` says when to come back where more than a notice is to be waited for."""

    taken: int
    failed: int
    contended: bool
    wait: timedelta | None


class RemoteDispatch:
    """The dispatch of the trains that are routed to one submitter."""

    def __init__(
        self,
        database: Database,
        settings: DispatchSettings,
        route: Route,
        *,
        server: Callable[[], UUID | None],
        emit: Emit,
        clock: Clock,
    ) -> None:
        self._database, self._settings, (self._submitter, self._trains) = database, settings, route
        self._server, self._emit, self._clock = server, emit, clock
        self._dispatching, self._executions = Dispatching(database.sql), Executions(database.sql)
        self._submitting = Submitting(database.sql)
        self._unresolved: UUID | None = None
        self._doubts: Doubts[UUID] = Doubts()
        self._pauses, self._stopping = Pauses(), False

    async def cycle(self) -> Submitted:
        """Submit, a few at a time, until nothing is left, something is not taken, or the cycle's limit is reached."""
        most = self._settings.max_queued_jobs_per_cycle
        for token in self._doubts.due():
            if await self._put_back(token):
                self._doubts.found(token)
        taken, failed, contended = 0, 0, False
        while not (self._stopping or self._pauses.for_all()) and (most is None or taken + failed < most):
            verdicts, contended = await self._claim_and_submit()
            taken, failed = taken + verdicts.count(Verdict.TAKEN), failed + verdicts.count(Verdict.FAILED)
            if not ENDS_THE_CYCLE.isdisjoint(verdicts):
                break
            if len(verdicts) < self._settings.max_concurrent_dispatch:
                return Submitted(taken, failed, contended, self._pauses.for_any())
        return Submitted(taken, failed, contended, self._pauses.for_all())

    def stop(self) -> None:
        """Claim nothing more; what is claimed is submitted."""
        self._stopping = True

    async def close(self) -> None:
        await self._submitter.aclose()

    def has_room(self) -> bool:
        """A runner has room again: answers whether that was waited for."""
        return self._pauses.has_room()

    async def _claim_and_submit(self) -> tuple[list[Verdict], bool]:
        """What was claimed is resolved here, or, where the database left in between, before the next claim."""
        await self._resolve()
        token = self._unresolved = uuid4()
        claimed, contended = await self._claim(token)
        verdicts = await asyncio.gather(*(self._submit(each, token) for each in claimed), return_exceptions=True)
        for verdict in verdicts:
            if isinstance(verdict, BaseException):
                raise verdict
        found = [verdict for verdict in verdicts if isinstance(verdict, Verdict)]
        if not UNTAKEN.isdisjoint(found):
            await self._resolve()
        self._unresolved = None
        if Verdict.FAILED in found:
            self._pauses.failed()
        elif found:
            self._pauses.answered()
        return found, contended

    async def _resolve(self) -> None:
        """Put back what is still held by the last token: nobody is about to take it."""
        token = self._unresolved
        if token is not None:
            found = await self._put_back(token)
            self._unresolved = None
            if not found:
                self._doubts.add(token)

    async def _put_back(self, token: UUID) -> int:
        return await self._database.retrying(lambda conn: self._submitting.put_back_if_held(conn, token))

    async def _claim(self, token: UUID) -> tuple[list[Claimed], bool]:
        """Claim what comes next; if the data of one entry breaks it, once more entry by entry."""
        server = self._server()
        if server is None:
            return [], False
        try:
            return await self._claim_in_tick(server, token, one_by_one=False)
        except Exception as error:
            if is_passing(error):
                raise
            return await self._claim_in_tick(server, token, one_by_one=True)

    async def _claim_in_tick(self, server: UUID, token: UUID, *, one_by_one: bool) -> tuple[list[Claimed], bool]:
        unfit: Sequence[Unfit] = ()
        async with self._database.connection() as conn, self._database.tick_on(conn, by_index=True):
            selection = await self._select(conn)
            claim = ClaimForSubmit(
                conn, self._dispatching, self._submitter.name, server, token, now=self._clock.injected()
            )
            if one_by_one:
                unfit = await dispatch_one_by_one(claim, self._database.sql, selection.verdict.chosen)
            else:
                await dispatch_jobs(claim, selection.verdict.chosen)
        for each in unfit:
            self._emit(EntryRefused(entry_id=each.entry_id, train=each.refused.train, error=each.error))
        return claim.claimed, selection.contended or bool(unfit)

    async def _select(self, conn: Connection) -> Selection:
        survey = await self._dispatching.survey(conn, self._pauses.open(self._trains))
        room = Room(self._settings.max_concurrent_dispatch)
        return await select(conn, self._dispatching, survey.lanes, self._settings, room)

    async def _submit(self, claimed: Claimed, token: UUID) -> Verdict:
        await failpoints.reach("dispatch.before_submit")
        try:
            await self._submitter.submit(
                Submission(claimed.execution_id, claimed.entry_id, claimed.train, claimed.input, claimed.attempt, token)
            )
        except NoRoom as busy:
            self._pauses.wait_for_room(busy, claimed.train)
            return Verdict.NO_ROOM_FOR_TRAIN if busy.train_only else Verdict.NO_ROOM
        except Exception as error:  # noqa: BLE001  whatever a submitter raises, the guarded write knows if it was taken
            return Verdict.FAILED if await self._failed(claimed, token, error) else Verdict.TAKEN
        async with self._database.transaction() as conn:
            await self._dispatching.submitted_if_held(conn, claimed.execution_id, token)
        return Verdict.TAKEN

    async def _failed(self, claimed: Claimed, token: UUID, error: Exception) -> bool:
        """Whether it was still ours: not if it was taken and only the answer was lost, or if it is over by now."""
        final = claimed.submits + 1 >= max(self._settings.max_dispatch_attempts, 1)
        written = await self._database.retrying(
            lambda conn: (
                self._give_up(conn, claimed, token, error) if final else self._requeue(conn, claimed, token, error)
            )
        )
        if written:
            self._emit(self._told(claimed, error, final=final))
        return written

    def _told(self, claimed: Claimed, error: Exception, *, final: bool) -> SubmitFailed:
        return SubmitFailed(
            execution_id=claimed.execution_id,
            train=claimed.train,
            manifest=claimed.manifest,
            attempt=claimed.attempt,
            submitter=self._submitter.name,
            error=error,
            final=final,
        )

    async def _requeue(self, conn: Connection, claimed: Claimed, token: UUID, error: Exception) -> bool:
        pause = min(FIRST_PAUSE * 2 ** min(claimed.submits, MOST_DOUBLINGS), LONGEST_PAUSE)
        return await self._dispatching.requeue_if_held(
            conn, claimed, token, error, delay=pause, now=self._clock.injected()
        )

    async def _give_up(self, conn: Connection, claimed: Claimed, token: UUID, error: Exception) -> bool:
        ending = Ending(
            execution_id=claimed.execution_id,
            claim_token=token,
            state=ExecutionState.FAILED,
            failure=SUBMIT_FAILED,
            error_type=kind_of(error),
            error_message=message_of(error),
        )
        ended = await self._executions.end(conn, [ending], now=self._clock.injected())
        await notify_in(conn, self._database, [f"ended:{each.first_entry_id}" for each in ended])
        return bool(ended)
