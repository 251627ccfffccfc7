"""What this worker holds and does not finish goes back to where any worker may claim it, with the same attempt.

At shutdown that is what still runs and is told to stop; at any time, jobs that stand by and do not get a slot here.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from contextvars import Context
from typing import TYPE_CHECKING

from interlock.observe.events.work import ExecutionReleased, SettleRefused
from interlock.runtime.loop import LoopBackoff
from interlock.store.background_job import BackgroundJobs
from interlock.store.execution import Executions
from interlock.worker.job import Cause
from interlock.worker.outcome import interrupted

if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.observe.bus import Emit
    from interlock.store.connection import Connection
    from interlock.store.database import Database
    from interlock.worker.job import Job
    from interlock.worker.settle import Settler

BACKOFF = LoopBackoff()
AT_ONCE = 0.2
"""Seconds for bodies that stop when told to; a forced shutdown leaves hardly more."""
AT_MOST = 3.0
"""Seconds for all; a body in a thread that does not ask is handed back while it still runs, and settles nothing."""


class HandBack:
    def __init__(
        self,
        database: Database,
        settler: Settler,
        *,
        emit: Emit,
        notify: Callable[[str], None],
    ) -> None:
        self._database, self._settler = database, settler
        self._emit, self._notify = emit, notify
        self._jobs, self._executions = BackgroundJobs(database.sql), Executions(database.sql)
        self._stopped: list[Job] = []
        self._releasing: asyncio.Task[None] | None = None

    def later(self, job: Job) -> None:
        """It has stopped because of the shutdown, or never began."""
        self._stopped.append(job)

    def soon(self) -> None:
        """Hand back what is there now; for as long as it takes, since nobody else may run it before."""
        if self._stopped and self._releasing is None:
            self._releasing = asyncio.create_task(self._release_persistently(), name="hand back", context=Context())

    def lost(self, job: Job) -> None:
        """It has stopped because it belongs to another: there is nothing to write."""
        self._emit(SettleRefused(outcome="lost", **job.about()))

    async def all(self, running: list[Job]) -> None:
        """Stop and hand back what runs, and write what has ended; within seconds, whatever the database does."""
        await self._stop_releasing()
        tasks = {job.task for job in running if job.task is not None}
        for job in running:
            job.interrupt(Cause.SHUTDOWN)
        with suppress(TimeoutError):
            async with asyncio.timeout(AT_MOST):
                for patience in (AT_ONCE, AT_MOST):
                    if tasks:
                        await asyncio.wait(tasks, timeout=patience)
                    await self._settler.flush()
                    with suppress(Exception):  # tried again below; a database that is away does not keep us
                        await self._release()
        self._give_up([job for job in running if job.task is not None and not job.task.done()])
        with suppress(Exception):
            async with asyncio.timeout(1):
                await self._release()
                await self._settler.flush()
        await _abandon({task for task in tasks if not task.done()})

    async def _release_persistently(self) -> None:
        failures = 0
        try:
            while self._stopped:
                try:
                    await self._release()
                except Exception:  # noqa: BLE001  whatever it is: until the answer comes, or the lease ends, it is ours
                    failures += 1
                    await asyncio.sleep(BACKOFF.pause(failures, random.random).total_seconds())
        finally:
            self._releasing = None

    async def _stop_releasing(self) -> None:
        if self._releasing is not None:
            self._releasing.cancel()
            await asyncio.wait({self._releasing})

    def _give_up(self, running: list[Job]) -> None:
        """Bodies that do not stop. What was to end before the shutdown ends as that; the others may run elsewhere."""
        for job in running:
            ending = interrupted(job)
            if ending is None:
                self._stopped.append(job)
            else:
                self._settler.end(job, ending)

    async def _release(self) -> None:
        jobs, self._stopped = self._stopped, []
        if not jobs:
            return
        try:
            released, asked = await self._database.retrying(lambda conn: self._release_in(conn, jobs))
        except BaseException:
            self._stopped += jobs
            raise
        for job in jobs:
            if job.execution_id in released:
                self._emit(_released(job))
            elif (cause := asked.get(job.execution_id)) and (ending := interrupted(job, cause)):
                self._settler.end(job, ending)
        self._notify("job")

    async def _release_in(self, conn: Connection, jobs: list[Job]) -> tuple[set[int], dict[int, Cause]]:
        """Which went back, and why others did not: what is asked to stop is not handed on."""
        ids, tokens = [job.execution_id for job in jobs], [job.token for job in jobs]
        released = set(await self._jobs.release_if_held(conn, ids, tokens))
        found = [] if len(released) == len(jobs) else await self._executions.watch(conn, ids, tokens)
        return released, {
            one.execution_id: Cause(one.cancel_cause) for one in found if one.cancel_cause and not one.lost
        }


def _released(job: Job) -> ExecutionReleased:
    stops = job.cause is Cause.SHUTDOWN
    return ExecutionReleased(reason="its server shuts down" if stops else "it found no slot in time", **job.about())


async def _abandon(tasks: set[asyncio.Task[None]]) -> None:
    """Nobody waits any more for bodies that are in threads; they were handed back."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=AT_ONCE)
