"""One timer on one server: each tick asks in a fixed order whether it may run now.

schedule → excluded times → cap of this server → breaker → slot of the fleet → tick of the fleet → run. The cheap
questions come first; the tick is taken last, because taking it consumes it even if the server dies right after.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from interlock.errors import LeaseLost, LockServiceUnavailable
from interlock.failpoints import reach
from interlock.model.exclusion import is_excluded
from interlock.model.schedule import Every
from interlock.observe.events.timer import (
    TimerEnded,
    TimerLockBack,
    TimerLockDown,
    TimerSaturated,
    TimerSkipped,
    TimerStarted,
)
from interlock.timers.counts import Counts, Skip
from interlock.timers.fires import Fires
from interlock.timers.run import Overrun, ThreadLeftBehind, run_body

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from interlock.locks.lease import Lease
    from interlock.locks.locks import Locks
    from interlock.observe.bus import Emit
    from interlock.timers.breaker import Breaker
    from interlock.timers.time import DatabaseTime
    from interlock.timers.timer import Timer

LOOK_AGAIN = timedelta(seconds=5)
"""A sleep goes by this host's clock, which stands still while the machine is suspended; the database's goes on."""
NEGATIVE_CACHE = 1.0
CACHED_BELOW = timedelta(seconds=10)
AGE_WARNING = 1.5  # times the longest run


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What all timers of a server share."""

    locks: Locks
    breaker: Breaker
    time: DatabaseTime
    take_tick: Callable[[Timer, datetime], Awaitable[bool]]
    """Raises `LockServiceUnavailable` when the database does not answer."""
    emit: Emit
    server: str
    distributed: bool = True


class TimerRunner:
    def __init__(self, timer: Timer, around: Surroundings) -> None:
        self.timer, self._around, self._emit = timer, around, around.emit
        self.counts = Counts(timer.name)
        self._distributed = around.distributed if timer.distributed is None else timer.distributed
        self._fires = Fires(timer, around.server)
        self._next: datetime | None = None
        self._began = False
        self._running: set[asyncio.Task[None]] = set()
        self._left_behind: set[asyncio.Future[Any]] = set()
        self._refused_at = float("-inf")
        self._saturated = self._down = False

    @property
    def running(self) -> int:
        """Bodies, those in threads that nobody waits for any more among them."""
        return len(self._running) + len(self._left_behind)

    @property
    def lock_down(self) -> bool:
        """Whether the lock service did not answer when it was last asked."""
        return self._down

    async def tick(self) -> timedelta:
        """Fire if it is time; answers how long to sleep."""
        now = self._around.time.now()
        if not self._began:
            self._next, self._began = self._fires.first(now), True
        if self._next is not None and self._next <= now:
            planned, self._next = self._next, self._fires.after(now)
            await self.fire(planned)
        if self._next is None:
            return LOOK_AGAIN
        return min(max(self._next - self._around.time.now(), timedelta(0)), LOOK_AGAIN)

    async def fire(self, planned: datetime) -> Skip | None:
        """Run now, or answer why not."""
        reason = await self._unless_possible(planned)
        if reason is None:
            self._saturated = False
            return None
        self.counts.skipped(reason)
        self._emit(TimerSkipped(timer=self.timer.name, reason=reason))
        if reason in (Skip.LOCAL_CAP, Skip.SLOTS_HELD) and not self._saturated:
            self._saturated = True
            self._emit(TimerSaturated(timer=self.timer.name, max_concurrency=self.timer.max_concurrency))
        return reason

    async def finish(self) -> None:
        """Wait for what runs."""
        while self._running:
            await asyncio.wait(self._running)

    async def cancel(self) -> None:
        """End what still runs."""
        for task in tuple(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _unless_possible(self, planned: datetime) -> Skip | None:
        if self._is_excluded(planned):
            return Skip.EXCLUDED_WINDOW
        if self.running >= self.timer.max_concurrency:
            return Skip.LOCAL_CAP
        if self._distributed and self._refused_just_now(planned):
            return Skip.SLOTS_HELD
        try:
            reason = await (self._with_slot(planned) if self._distributed else self._with_tick(planned, None))
        except LockServiceUnavailable as error:
            return self._without_lock_service(error)
        self._answered(reason)
        return reason

    def _is_excluded(self, planned: datetime) -> bool:
        """A server that stood still fires late, and must not run in an excluded time; nor for an excluded fire of cron.

        The times of an interval are nobody's plan: only the present counts.
        """
        now = self._around.time.now()
        moments = (now,) if isinstance(self.timer.schedule, Every) else (planned, now)
        return any(is_excluded(self.timer.exclude, self.timer.tz, moment) for moment in moments)

    async def _with_slot(self, planned: datetime) -> Skip | None:
        if not self._around.breaker.allows():
            raise LockServiceUnavailable(where="the breaker", reason="it failed several times just now")
        lease = await self._ask_for_slot()
        if lease is None:
            self._refused_at = time.monotonic()
            return Skip.SLOTS_HELD
        return await self._with_tick(planned, lease)

    async def _ask_for_slot(self) -> Lease | None:
        try:
            lease = await self._around.locks.atry_hold(
                self.timer.lock_name,
                self.timer.max_concurrency,
                warn_after=self.timer.max_run_time * AGE_WARNING,
            )
        except LockServiceUnavailable:
            self._around.breaker.failed()
            raise
        self._around.breaker.succeeded()
        return lease

    def _answered(self, reason: Skip | None) -> None:
        """Slots and ticks may live in two services: only when neither fails has the trouble ended."""
        untried = reason is Skip.SLOTS_HELD and self.timer.runs_per_tick is not None
        if self._down and not untried:
            self._down = False
            self._emit(TimerLockBack(timer=self.timer.name))

    async def _with_tick(self, planned: datetime, lease: Lease | None) -> Skip | None:
        try:
            await reach("timers.before_tick")
            taken = self.timer.runs_per_tick is None or await self._around.take_tick(self.timer, planned)
            await reach("timers.after_tick")
        except BaseException:
            await self._give_back(lease)
            raise
        if not taken:
            await self._give_back(lease)
            return Skip.TICK_TAKEN
        self._start(lease)
        return None

    def _without_lock_service(self, error: LockServiceUnavailable) -> Skip | None:
        policy = self.timer.when_lock_down
        if not self._down:
            self._down = True
            self._emit(TimerLockDown(timer=self.timer.name, policy=policy, error=error))
        if policy == "raise":
            raise error
        if policy == "skip":
            return Skip.LOCK_SERVICE_DOWN
        if self.running >= (self.timer.local_cap or 1):
            return Skip.LOCAL_CAP
        self._start(None)
        return None

    def _refused_just_now(self, planned: datetime) -> bool:
        """Timers that fire often do not ask again at once. It only ever remembers a refusal: it takes no slot."""
        if time.monotonic() - self._refused_at >= NEGATIVE_CACHE:
            return False
        following = self._fires.after(planned)
        return following is not None and following - planned < CACHED_BELOW

    def _start(self, lease: Lease | None) -> None:
        self.counts.ran()
        slot = None if lease is None else lease.slot
        self._emit(TimerStarted(timer=self.timer.name, slot=slot, host=self._around.server))
        task = asyncio.create_task(self._run(lease), name=f"timer {self.timer.name}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, lease: Lease | None) -> None:
        began = time.monotonic()
        outcome, error = await self._outcome(lease)
        if outcome in ("failed", "overran", "lost"):
            self.counts.failed()
        took = timedelta(seconds=time.monotonic() - began)
        self._emit(TimerEnded(timer=self.timer.name, outcome=outcome, took=took, error=error))

    async def _outcome(self, lease: Lease | None) -> tuple[str, BaseException | None]:
        try:
            async with lease or nullcontext():
                await self._body(lease)
        except Overrun:
            return "overran", None
        except LeaseLost as error:
            return "lost", error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            return ("cancelled", None) if task is not None and task.cancelling() else ("failed", error)
        except BaseException as error:  # noqa: BLE001  SystemExit ends the run, not the server
            return "failed", error
        return "succeeded", None

    async def _body(self, lease: Lease | None) -> None:
        try:
            await run_body(self.timer, self._emit)
        except ThreadLeftBehind as left:
            self._left_behind.add(left.thread)
            left.thread.add_done_callback(self._left_behind.discard)
            if lease is not None:
                lease.abandon()
            raise

    async def _give_back(self, lease: Lease | None) -> None:
        if lease is not None:
            await lease.arelease()
