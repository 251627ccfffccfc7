"""Work that runs elsewhere: claim no more than can be submitted at once, commit, then submit.

Until it is submitted an execution carries this server's lease, so nothing is lost with the server. A submit that failed
closes its execution and queues the entry again in one transaction. That is no failure of the train; after
`max_dispatch_attempts` of them the work is left to a person.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from interlock import failpoints
from interlock.dispatch.room import Room
from interlock.dispatch.select import select
from interlock.dispatch.submitters.protocol import Submission
from interlock.model.lifecycle import ExecutionState
from interlock.model.outcome import SUBMIT_FAILED, Ending
from interlock.observe.events.work import SubmitFailed
from interlock.store.dispatching import Dispatching
from interlock.store.execution import Executions
from interlock.store.notify import notify_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from interlock.dispatch.select import Selection
    from interlock.dispatch.settings import DispatchSettings
    from interlock.dispatch.submitters.protocol import Submitter
    from interlock.observe.bus import Emit
    from interlock.runtime.clock import Clock
    from interlock.store.connection import Connection
    from interlock.store.database import Database
    from interlock.store.dispatching import Claimed

FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=2), timedelta(seconds=60)


class Submitted(NamedTuple):
    taken: int
    failed: int
    contended: bool


class RemoteDispatch:
    """The dispatch of the trains that are routed to one submitter."""

    def __init__(
        self,
        database: Database,
        settings: DispatchSettings,
        submitter: Submitter,
        *,
        server: Callable[[], UUID | None],
        emit: Emit,
        clock: Clock,
    ) -> None:
        self._database, self._settings, self._submitter = database, settings, submitter
        self._server, self._emit, self._clock = server, emit, clock
        self._dispatching, self._executions = Dispatching(database.sql), Executions(database.sql)

    async def cycle(self) -> Submitted:
        """Submit, a few at a time, until nothing is left or the cycle's limit is reached."""
        most = self._settings.max_queued_jobs_per_cycle
        taken = failed = 0
        contended = False
        while most is None or taken + failed < most:
            token = uuid4()
            claimed, contended = await self._claim(token)
            outcomes = await asyncio.gather(*(self._submit(each, token) for each in claimed))
            taken, failed = taken + sum(outcomes), failed + len(outcomes) - sum(outcomes)
            if len(claimed) < self._settings.max_concurrent_dispatch:
                break
        return Submitted(taken, failed, contended)

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
        survey = await self._dispatching.survey(conn, self._submitter.trains)
        room = Room(self._settings.max_concurrent_dispatch)
        return await select(conn, self._dispatching, survey.lanes, self._settings, room)

    async def _submit(self, claimed: Claimed, token: UUID) -> bool:
        await failpoints.reach("dispatch.before_submit")
        try:
            await self._submitter.submit(
                Submission(claimed.execution_id, claimed.entry_id, claimed.train, claimed.input, claimed.attempt)
            )
        except Exception as error:  # noqa: BLE001  whatever a submitter raises, the work was not taken
            await self._failed(claimed, token, error)
            return False
        async with self._database.transaction() as conn:
            await self._dispatching.submitted_if_held(conn, claimed.execution_id, token)
        return True

    async def _failed(self, claimed: Claimed, token: UUID, error: Exception) -> None:
        final = claimed.submits + 1 >= max(self._settings.max_dispatch_attempts, 1)
        await self._database.retrying(
            lambda conn: (
                self._give_up(conn, claimed, token, error) if final else self._requeue(conn, claimed, token, error)
            )
        )
        self._emit(
            SubmitFailed(
                execution_id=claimed.execution_id,
                train=claimed.train,
                manifest=claimed.manifest,
                attempt=claimed.attempt,
                submitter=self._submitter.name,
                error=error,
                final=final,
            )
        )

    async def _requeue(self, conn: Connection, claimed: Claimed, token: UUID, error: Exception) -> None:
        pause = min(FIRST_PAUSE * 2**claimed.submits, LONGEST_PAUSE)
        await self._dispatching.requeue_if_held(conn, claimed, token, error, delay=pause, now=self._clock.injected())

    async def _give_up(self, conn: Connection, claimed: Claimed, token: UUID, error: Exception) -> None:
        ending = Ending(
            execution_id=claimed.execution_id,
            claim_token=token,
            state=ExecutionState.FAILED,
            failure=SUBMIT_FAILED,
            error_type=type(error).__name__,
            error_message=str(error),
        )
        ended = await self._executions.end(conn, [ending], now=self._clock.injected())
        await notify_in(conn, self._database, [f"ended:{each.first_entry_id}" for each in ended])
