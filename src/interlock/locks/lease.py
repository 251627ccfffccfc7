"""A held slot, and what becomes of its holder when the lease is lost.

The local deadline is authoritative for the holder: it is counted from before the request was sent, so it lies before
the moment at which the lock service gives the slot away. Nothing but an answer of the service moves it. The body of an
`async with` is cancelled when the lease is lost, by the keeper that heard of it or by a timer of its own event loop,
whichever comes first; `ensure()` looks at the deadline itself and needs neither of them.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, Protocol, Self

from interlock.errors import LeaseLost
from interlock.locks.deadline import clock, deadline
from interlock.locks.options import checked_ttl
from interlock.model.lease import Held
from interlock.observe.events.lock import SlotLost
from interlock.runtime.portal import portal, refuse_in_event_loop

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from interlock.model.lease import Grant, SlotRequest

UNKNOWN = "the lock service does not know it any more"
OnLost = Literal["cancel", "mark"]


class Custodian(Protocol):
    """Who extends and gives back for a lease."""

    async def extend(self, lease: Lease, ttl: timedelta) -> bool: ...

    async def release(self, lease: Lease) -> bool: ...

    def abandon(self, lease: Lease) -> None: ...

    def let_go(self, lease: Lease) -> None: ...


class Lease:
    """Slot `slot` of `name`, held until it is released or lost. A context manager, for `with` and `async with`."""

    def __init__(
        self,
        request: SlotRequest,
        grant: Grant,
        custodian: Custodian,
        *,
        asked: float,
        at_least: timedelta,
        on_lost: OnLost,
    ) -> None:
        self.name, self.slots, self.token, self.owner = request.name, request.slots, request.token, request.owner
        self.slot, self.fence, self.acquired_at = grant.slot, grant.fence, grant.acquired_at
        self.ttl, self.at_least = request.ttl, at_least
        self.began = self.answered = asked
        self._deadline = deadline(asked, grant.remaining)
        self._custodian, self._on_lost = custodian, on_lost
        self._lost = self._ended = False
        self._untold, self._reason = [True], "it was not renewed in time"
        self._watchers: list[Callable[[], None]] = []
        self._canceller: _Canceller | None = None
        self._pid = os.getpid()

    def __repr__(self) -> str:
        state = "lost" if self.lost else "released" if self._ended else f"{self.remaining().total_seconds():.3g} s left"
        return f"<Lease {self.name!r} slot {self.slot} fence {self.fence}, {state}>"

    def remaining(self) -> timedelta:
        """How long the lease may still be believed without another answer of the lock service."""
        if self._lost or self._pid != os.getpid():
            return timedelta(0)
        return timedelta(seconds=max(self._deadline - clock(), 0))

    @property
    def lost(self) -> bool:
        """True once another owner may hold the slot; it never becomes false again."""
        if not self._lost and not self._ended and not self.remaining():
            self._lost = True
        return self._lost

    @property
    def ended(self) -> bool:
        """Whether it was given back."""
        return self._ended

    @property
    def held(self) -> Held:
        return Held(self.name, self.slot, self.token, self.ttl)

    @property
    def held_for(self) -> timedelta:
        return timedelta(seconds=clock() - self.began)

    def ensure(self) -> None:
        """Raise `LeaseLost` unless the slot is still held for certain; call it before what only one may do."""
        if self.lost or self._ended:
            raise LeaseLost(name=self.name, slot=self.slot, fence=self.fence)

    async def aextend(self, ttl: timedelta | None = None) -> None:
        """Hold on for `ttl` from now, and for as long at each renewal; raises `LeaseLost` if it is lost.

        It never takes the slot again. A shorter `ttl` than before does not free the slot earlier than was promised.
        """
        ttl = self.ttl if ttl is None else checked_ttl(ttl)
        self.ensure()
        if not await self._custodian.extend(self, ttl):
            self.declare_lost(UNKNOWN)
        self.ensure()

    def extend(self, ttl: timedelta | None = None) -> None:
        """The blocking twin of `aextend`."""
        portal.call(self.aextend, ttl)

    async def arelease(self) -> bool:
        """Give the slot back; False says that it was not held any more."""
        if self._ended or self._pid != os.getpid():
            return False
        was_lost = self.lost
        self._ended = True
        return await self._custodian.release(self) and not was_lost

    def release(self) -> bool:
        """The blocking twin of `arelease`."""
        return portal.call(self.arelease)

    def abandon(self) -> None:
        """Neither renew nor give back: the slot becomes free when the lease runs out, and not before."""
        self._ended = True
        self._custodian.abandon(self)

    def let_go(self) -> None:
        """Have it given back, without waiting for that."""
        self._ended = True
        self._custodian.let_go(self)

    def renewed(self, asked: float, remaining: timedelta) -> None:
        """An answer of the lock service. It shortens no lease, so whichever promises most holds, also if it is late."""
        self.answered = max(self.answered, asked)
        self._deadline = max(self._deadline, deadline(asked, remaining))

    def declare_lost(self, reason: str = "it was not renewed in time") -> None:
        """From any thread."""
        if self._ended:
            return
        if not self._lost:
            self._reason = reason
        self._lost, watchers, self._watchers = True, self._watchers, []
        for watcher in watchers:
            watcher()

    def tell_loss(self) -> SlotLost | None:
        """The event to emit, for the first who asks: the keeper and the holder may find out at the same time."""
        try:
            self._untold.pop()
        except IndexError:
            return None
        return SlotLost(name=self.name, slot=self.slot, fence=self.fence, held_for=self.held_for, reason=self._reason)

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call this when the lease is declared lost, from the thread that found out."""
        self._watchers.append(watcher)
        if self._lost:
            self.declare_lost()

    def __enter__(self) -> Self:
        refuse_in_event_loop("async with")  # giving it back at the end would be refused
        self._check_entry()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        lost = self.lost
        self.release()
        if lost and error is None and self._on_lost == "cancel":
            raise LeaseLost(name=self.name, slot=self.slot, fence=self.fence)

    async def __aenter__(self) -> Self:
        self._check_entry()
        if self._on_lost == "cancel":
            self._canceller = _Canceller(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        lost = self.lost
        ours = self._canceller.disarm(error) if self._canceller is not None else False
        await self.arelease()
        if ours or (lost and error is None and self._on_lost == "cancel"):
            raise LeaseLost(name=self.name, slot=self.slot, fence=self.fence) from error

    def _check_entry(self) -> None:
        """What is lost only cancels a body that has begun, and what was given back protects none."""
        if self._ended or (self.lost and self._on_lost == "cancel"):
            raise LeaseLost(name=self.name, slot=self.slot, fence=self.fence)


class _Canceller:
    """Cancels the task of the body, and knows its own cancellation from one that the user asked for."""

    def __init__(self, lease: Lease) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("`async with` on a lease needs a task")
        self._lease, self._task, self._loop = lease, task, asyncio.get_running_loop()
        self._requests_before = task.cancelling()
        self._fired = self._disarmed = False
        self._timer = self._loop.call_later(0, self._look)
        lease.watch(self._from_any_thread)

    def disarm(self, error: BaseException | None) -> bool:
        """Whether the error is the cancellation that came from here alone."""
        self._disarmed = True
        self._timer.cancel()
        if not self._fired:
            return False
        requests = self._task.uncancel()
        return requests <= self._requests_before and isinstance(error, asyncio.CancelledError)

    def _look(self) -> None:
        if self._lease.lost:
            self._fire()
        else:
            self._timer = self._loop.call_later(self._lease.remaining().total_seconds(), self._look)

    def _from_any_thread(self) -> None:
        with suppress(RuntimeError):  # the event loop is closed: there is no body any more
            self._loop.call_soon_threadsafe(self._fire)

    def _fire(self) -> None:
        if not self._fired and not self._disarmed and not self._lease.ended:
            self._fired = True
            self._task.cancel(f"the lease on {self._lease.name!r} is lost")
