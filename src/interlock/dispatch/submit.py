"""Work that runs elsewhere: claim no more than can be submitted at once, commit, then submit.

Until it is submitted an execution carries this server's lease, so nothing is lost with the server. A submit that failed
closes its execution and queues the entry again in one transaction. That is no failure of the train; after
`max_dispatch_attempts` of them the work is left to a person. Where there is no room the claim is undone: waiting is no
attempt. Either way the cycle ends there, and new work begins no other before a pause is over, because what a whole
queue waits for is not to be tried with each of it.
"""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from interlock import failpoints
from interlock.dispatch.room import Room
from interlock.dispatch.select import select
from interlock.dispatch.submitters.protocol import NoRoom, Submission
from interlock.model.failure import kind_of, message_of
from interlock.model.lifecycle import ExecutionState
from interlock.model.outcome import SUBMIT_FAILED, Ending
from interlock.observe.events.work import SubmitFailed
from interlock.store.dispatching import Dispatching
from interlock.store.execution import Executions
from interlock.store.notify import notify_in
from interlock.store.submitting import Submitting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from interlock.dispatch.select import Selection
    from interlock.dispatch.settings import DispatchSettings
    from interlock.dispatch.submitters.protocol import Route
    from interlock.observe.bus import Emit
    from interlock.runtime.clock import Clock
    from interlock.store.connection import Connection
    from interlock.store.database import Database
    from interlock.store.dispatching import Claimed

FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=2), timedelta(seconds=60)
AFTER_NOTICE, SHORTEST_PAUSE = timedelta(seconds=0.01), timedelta(seconds=0.1)
"""For those who say that there is no room and that it is of no use to wait."""
MOST_DOUBLINGS, LONGEST_PAUSE_OF_ALL = 10, timedelta(seconds=10)
"""Short, because a runner that is back, or refuses only some, is then soon asked for the others."""


class Verdict(Enum):
    TAKEN = auto()
    FAILED = auto()
    NO_ROOM = auto()


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
        self._room_at = self._room_at_notice = self._again_at = 0.0
        self._failures = 0

    async def cycle(self) -> Submitted:
        """Submit, a few at a time, until nothing is left, something is not taken, or the cycle's limit is reached."""
        most = self._settings.max_queued_jobs_per_cycle
        taken, failed, contended = 0, 0, False
        while not self._pause() and (most is None or taken + failed < most):
            verdicts, contended = await self._claim_and_submit()
            taken, failed = taken + verdicts.count(Verdict.TAKEN), failed + verdicts.count(Verdict.FAILED)
            if Verdict.NO_ROOM in verdicts or Verdict.FAILED in verdicts:
                break
            if len(verdicts) < self._settings.max_concurrent_dispatch:
                return Submitted(taken, failed, contended, None)
        return Submitted(taken, failed, contended, self._pause())

    async def close(self) -> None:
        await self._submitter.aclose()

    def has_room(self) -> bool:
        """A runner has room again: answers whether that was waited for. It ends no other pause."""
        waited = self._room_at_notice < self._room_at and self._room_at > time.monotonic()
        self._room_at = min(self._room_at, self._room_at_notice)
        return waited

    def _wait_for_room(self, busy: NoRoom) -> None:
        now = time.monotonic()
        self._room_at = now + max(busy.after, SHORTEST_PAUSE).total_seconds()
        # Another runner may have told it, so that notices set no pace of their own.
        self._room_at_notice = now + AFTER_NOTICE.total_seconds() if busy.or_notice else self._room_at

    def _pause(self) -> timedelta:
        """How long to wait after a failure, or because it was told to; zero where nothing is to be waited for."""
        return timedelta(seconds=max(self._room_at - time.monotonic(), self._again_at - time.monotonic(), 0))

    def _count_failures(self, verdicts: Sequence[Verdict]) -> None:
        """Whoever answers that there is no room is not away."""
        if Verdict.FAILED in verdicts:
            pause = min(FIRST_PAUSE * 2 ** min(self._failures, MOST_DOUBLINGS), LONGEST_PAUSE_OF_ALL)
            self._again_at = time.monotonic() + pause.total_seconds()
            self._failures += 1
        elif verdicts:
            self._failures = 0

    async def _claim_and_submit(self) -> tuple[list[Verdict], bool]:
        """What was claimed is resolved here, or, where the database left in between, before the next claim."""
        await self._resolve()
        token = self._unresolved = uuid4()
        claimed, contended = await self._claim(token)
        verdicts = await asyncio.gather(*(self._submit(each, token) for each in claimed), return_exceptions=True)
        for verdict in verdicts:
            if isinstance(verdict, BaseException):
                raise verdict
        if Verdict.NO_ROOM in verdicts:
            await self._resolve()
        self._unresolved = None
        found = [verdict for verdict in verdicts if isinstance(verdict, Verdict)]
        self._count_failures(found)
        return found, contended

    async def _resolve(self) -> None:
        """Put back what is still held by the last token: nobody is about to take it."""
        token = self._unresolved
        if token is not None:
            await self._database.retrying(lambda conn: self._submitting.put_back_if_held(conn, token))
            self._unresolved = None

    async def _claim(self, token: UUID) -> tuple[list[Claimed], bool]:
        server = self._server()
        if server is None:
            return [], False
        async with self._database.connection() as conn, self._database.tick_on(conn, by_index=True):
            selection = await self._select(conn)
            claimed = await self._dispatching.claim_for_submit(
                conn,
                selection.verdict.chosen,
                submitter=self._submitter.name,
                server=server,
                token=token,
                now=self._clock.injected(),
            )
        return claimed, selection.contended

    async def _select(self, conn: Connection) -> Selection:
        survey = await self._dispatching.survey(conn, self._trains)
        room = Room(self._settings.max_concurrent_dispatch)
        return await select(conn, self._dispatching, survey.lanes, self._settings, room)

    async def _submit(self, claimed: Claimed, token: UUID) -> Verdict:
        await failpoints.reach("dispatch.before_submit")
        try:
            await self._submitter.submit(
                Submission(claimed.execution_id, claimed.entry_id, claimed.train, claimed.input, claimed.attempt, token)
            )
        except NoRoom as busy:
            self._wait_for_room(busy)
            return Verdict.NO_ROOM
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
        pause = min(FIRST_PAUSE * 2**claimed.submits, LONGEST_PAUSE)
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
