"""The worker of a server: claims jobs as slots get free, runs them, settles them, and hands back what it cannot finish.

A job is held from its claim until its outcome is written; the proof is the token of the claim. Its slot is free as soon
as the body returns.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from interlock.observe.events.work import WorkClaimed
from interlock.runtime.loop import Loop
from interlock.runtime.threads import Threads
from interlock.store.execution import Executions
from interlock.worker.cancel import CancelWatch
from interlock.worker.claim import Claiming
from interlock.worker.deadlines import Deadlines
from interlock.worker.handback import HandBack
from interlock.worker.job import Cause, Job
from interlock.worker.processes import Processes
from interlock.worker.report import Report
from interlock.worker.run import Runner
from interlock.worker.settle import Settler
from interlock.worker.standby import Standby

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from uuid import UUID

    from interlock.model.execution import Claim, Reservation
    from interlock.model.outcome import Ending
    from interlock.observe.bus import Emit
    from interlock.observe.events.base import Event
    from interlock.runtime.clock import Clock
    from interlock.store.database import Database
    from interlock.trains.bound import Bound
    from interlock.worker.activate import Activator
    from interlock.worker.extensions import Extensions
    from interlock.worker.hooks import Hooks
    from interlock.worker.settings import WorkerSettings
    from interlock.worker.slots import Slots

UNSETTLED_PER_SLOT = 20  # beyond that, claiming waits for settling
LAST_LOOK = 2.0  # seconds at the end for a claim whose answer was lost, before the bodies hear that they are to stop


class Worker:
    """A component. `server` answers under which id this process is registered; None: not at this moment."""

    name = "worker"

    def __init__(
        self,
        database: Database,
        slots: Slots,
        *,
        settings: WorkerSettings,
        server: Callable[[], UUID | None],
        host: str,
        clock: Clock,
        activator: Activator,
        emit: Emit,
        notify: Callable[[str], None] = lambda _: None,
        watched: Callable[[type[Event]], bool] = lambda _: True,
        extensions: Extensions | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        self._slots, self._settings, self._server = slots, settings, server
        self._standby = Standby(self._pass_on)
        self._activator, self._emit, self._watched = activator, emit, watched
        self._on_freed: Callable[[], None] = lambda: None
        self._claiming = Claiming(
            database,
            slots,
            server=server,
            host=host,
            clock=clock,
            interval=settings.worker_polling_interval,
            take=self._take,
            hand_on=self._hand_on,
            offer=self._capacity_freed,
        )
        self._threads, self._deadlines = Threads(slots.total), Deadlines(slots)
        self._processes = Processes()
        report = Report(emit=emit, notify=notify, freed=self._capacity_freed, watched=watched, hooks=hooks)
        self._settler = Settler(database, window=settings.settle_window, clock=clock, report=report)
        self._hand_back = HandBack(database, self._settler, emit=emit, notify=notify)
        self._runner = Runner(
            database,
            Executions(database.sql),
            self._threads,
            self._processes,
            max_output_bytes=settings.max_output_bytes,
            extensions=extensions,
            completed=self._completed,
            stopped=self._stopped,
        )
        self._watch = CancelWatch(database, slots, interval=settings.worker_polling_interval)
        self._loop = Loop(self.name, self.tick, emit=emit)
        self._watching = Loop(self._watch.name, self._watch.tick, emit=emit)
        self._home: asyncio.AbstractEventLoop | None = None
        self._context = copy_context()
        self._stopping = self._closed = self._put_off = False
        self._idle = asyncio.Event()
        if hooks is not None:
            hooks.on_ended(self._hook_ended)

    @property
    def slots(self) -> Slots:
        """What it can take, for the dispatcher of this server."""
        return self._slots

    @property
    def is_taking(self) -> bool:
        """Whether it has started and was not told to stop."""
        return self._home is not None and not self._stopping

    @property
    def free_slots(self) -> int:
        return self._slots.free

    def busy(self) -> int:
        return len(self._slots.held) + self._settler.waiting

    def wake(self) -> None:
        """There are new jobs; from any thread."""
        self._claiming.may_get_more = True
        self._loop.wake()

    def cancel_noticed(self, detail: str) -> None:
        """Somebody asked for executions to stop."""
        if self._watch.concerns(detail):
            self._watching.wake()

    def on_freed(self, listener: Callable[[], None]) -> None:
        """Call this when a slot gets free, and again when an outcome is written and no cap counts it any more."""
        self._on_freed = listener

    def lost(self, server: UUID) -> None:
        """The lease under this id is lost: its jobs belong to others. From the keeper's thread."""
        marked = [job for job in tuple(self._slots.held.values()) if job.server == server and job.mark(Cause.LOST)]
        if marked and self._home is not None:
            with suppress(RuntimeError):  # the event loop is closed: nothing runs any more
                self._home.call_soon_threadsafe(_cancel_all, marked)

    async def activate(self, job: Job, external_id: str, bound: Bound[Any] | None) -> bool:
        return await self._activator.activate(job, external_id, bound)

    async def start(self) -> None:
        self._home = asyncio.get_running_loop()

    def draining(self) -> None:
        """The server stops: nothing new from now on, although others are stopped first."""
        self._stopping = True

    def stop(self) -> None:
        self.draining()
        self._loop.stop()

    def reserve(self) -> Reservation | None:
        """Room for the dispatcher of this server to fill; None: not now, it is called as soon as that changes."""
        self._put_off = self._is_behind
        if self._stopping or self._claiming.is_next or self._put_off or self._standby:
            return None
        return self._claiming.reserve(self._standby.room)

    def take_up(self, reservation: Reservation, claims: list[Claim]) -> None:
        """Run what was dispatched to the reserved slots; the others are free again."""
        if self._closed:
            return  # a forced shutdown did not wait for it: it is recovered like all that a server left behind
        self._claiming.answered()
        self._take(claims, reservation)
        if self._claiming.is_next:
            self._loop.wake()
        if not self._slots.held:
            self._idle.set()

    def unsure(self) -> None:
        """The dispatch to the reserved slots may have happened, its answer is lost."""
        self._claiming.unsure()
        self._loop.wake()
        self._idle.set()

    async def run(self) -> None:
        """Until stopped and idle; cancelled before that, it tells what runs to stop and hands it back."""
        watching = asyncio.create_task(self._watching.run(), name=self._watch.name)
        try:
            await self._loop.run()
            await self._until_idle()
            await self._settler.flush()
        finally:
            # In a task of its own: before Python 3.11.3 a limit of time that runs out in a task that was cancelled
            # cancels it once more, and nothing would be handed back.
            await asyncio.shield(self._end(watching))

    async def tick(self) -> timedelta:
        """Claim as many jobs as there are free slots."""
        self._claiming.is_next = False
        if self._server() is None or self._is_behind or self._stopping:
            return self._settings.worker_polling_interval
        return await self._claiming.tick()

    async def step(self) -> int:
        """Claim once, let what was claimed end, and settle it; answers how many jobs that were."""
        before = len(self._slots.held)
        await self.tick()
        began = len(self._slots.held) - before
        await self._until_idle()
        await self._settler.flush()
        return began

    async def aclose(self) -> None:
        """Free what a worker that was only stepped holds."""
        self._closed = True
        self._deadlines.close()
        await self._settler.close()
        await self._claiming.close()
        self._threads.close()
        await self._processes.close()

    @property
    def _is_behind(self) -> bool:
        return self._settler.waiting > UNSETTLED_PER_SLOT * self._slots.total

    def _take(self, claims: list[Claim], reservation: Reservation) -> None:
        """Begin with as many as there are slots; the others stand by."""
        free, watched, jobs = self._slots.free, self._watched(WorkClaimed), self._jobs_of(claims, reservation)
        for job in jobs:
            self._slots.take(job)
            if watched:
                self._emit(_claimed(job))
        # Looked at after they are held: whoever loses the lease now finds them.
        if reservation.server != self._server():
            for job in jobs:
                job.mark(Cause.LOST)
        self._begin(jobs[:free])
        self._standby.filled(jobs[free:])

    def _hand_on(self, claims: list[Claim], reservation: Reservation) -> None:
        for job in self._jobs_of(claims, reservation):
            self._hand_back.later(job)
        self._hand_back.soon()

    def _jobs_of(self, claims: list[Claim], reservation: Reservation) -> list[Job]:
        server, token, trains = reservation.server, reservation.token, self._slots.trains
        return [Job(claim, trains[claim.train], token=token, server=server, services=self) for claim in claims]

    def _begin(self, jobs: list[Job]) -> None:
        now, create_task, run = time.monotonic(), asyncio.create_task, self._runner.run
        for job in jobs:
            job.start(now)
            # Not in the context of the job whose slot it gets: what a body sets is gone with it.
            job.task = create_task(run(job), context=self._context.copy())
        self._deadlines.watch(job.deadline for job in jobs)

    def _completed(self, job: Job) -> None:
        self._settler.complete(job)
        self._slot_freed(job)

    def _stopped(self, job: Job, ending: Ending | None) -> None:
        if ending is not None:
            self._settler.end(job, ending)
        elif job.cause is Cause.SHUTDOWN:
            self._hand_back.later(job)
        else:
            self._hand_back.lost(job)
        self._slot_freed(job)

    def _slot_freed(self, job: Job) -> None:
        self._slots.give_back(job)
        following = self._standby.following()
        if following is not None:
            self._begin([following])
        if self._standby:
            return
        if self._claiming.may_get_more:
            self._loop.wake()
        self._on_freed()
        if not self._slots.held:
            self._idle.set()

    def _pass_on(self, jobs: list[Job]) -> None:
        """They would wait here for longer than elsewhere."""
        for job in jobs:
            self._slots.give_back(job)
            self._hand_back.later(job)
        self._hand_back.soon()

    def _hook_ended(self) -> None:
        """Whoever was put off until fewer wait may go on. A settle that caught up says so itself."""
        if self._put_off and not self._is_behind:
            self._put_off = False
            self._capacity_freed()

    def _capacity_freed(self) -> None:
        self._on_freed()

    async def _until_idle(self) -> None:
        while self._slots.held or self._claiming.in_flight:
            self._idle.clear()
            await self._idle.wait()

    async def _end(self, watching: asyncio.Task[None]) -> None:
        with suppress(Exception):
            async with asyncio.timeout(LAST_LOOK):
                await self._claiming.recall()
        standing_by = self._standby.dismiss()
        for job in standing_by:
            job.mark(Cause.SHUTDOWN)
        self._pass_on(standing_by)
        await self._hand_back.all(list(self._slots.held.values()))
        self._watching.stop()
        watching.cancel()
        await asyncio.wait({watching})
        await self.aclose()


def _cancel_all(jobs: list[Job]) -> None:
    for job in jobs:
        job.cancel()


def _claimed(job: Job) -> WorkClaimed:
    return WorkClaimed(**job.about())
