"""Taking a slot: one try, or tries until the caller will wait no longer."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from interlock.errors import LockServiceUnavailable
from interlock.locks.deadline import clock
from interlock.locks.lease import Lease
from interlock.model.lease import Refusal, SlotRequest
from interlock.observe.events.lock import SlotAcquired, SlotExpired, SlotRefused, SlotReleased, SlotsDisagree

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from interlock.locks.backend import LockBackend
    from interlock.locks.keeper import LockKeeper
    from interlock.locks.options import Wish
    from interlock.model.lease import Grant, Peers
    from interlock.observe.bus import Emit

_PATIENCE = 5.0  # seconds that one request may take
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


class Acquirer:
    """Takes slots for one owner, and extends and gives them back."""

    def __init__(self, backend: LockBackend, keeper: LockKeeper, owner: Callable[[], str], *, emit: Emit) -> None:
        self._backend, self._keeper, self._owner, self._emit = backend, keeper, owner, emit
        self._disagreements: set[tuple[str, int, int]] = set()

    async def take(self, wish: Wish, server: UUID | None = None) -> Lease | None:
        """The lease, or None if every slot stayed taken for as long as the caller would wait."""
        began, pause = clock(), _FIRST_PAUSE
        while True:
            answer = await self._try(wish, server, began)
            if isinstance(answer, Lease):
                return answer
            left = began + wish.wait.total_seconds() - clock()
            if left <= 0:
                return None
            await asyncio.sleep(min(_pause(answer, pause), left))
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    async def extend(self, lease: Lease, ttl: timedelta) -> bool:
        asked = clock()
        with self._in_time(ttl):
            answers = await self._backend.extend([replace(lease.held, ttl=ttl)])
        if (remaining := answers.get(lease.token)) is None:
            return False
        lease.ttl = ttl
        lease.renewed(asked, remaining)
        if not lease.ended:
            self._keeper.keep(lease)
        return True

    async def release(self, lease: Lease) -> bool:
        self._keeper.drop(lease)
        if lease.lost and (told := lease.tell_loss()):
            self._emit(told)
        released = False
        try:
            with self._in_time(lease.ttl):
                released = await self._backend.release(lease.name, lease.token, lease.at_least)
        except LockServiceUnavailable:
            self._release_later(lease)
        except BaseException:
            self._release_later(lease)
            raise
        if released:
            self._emit(SlotReleased(name=lease.name, slot=lease.slot, held_for=lease.held_for))
        return released

    def abandon(self, lease: Lease) -> None:
        self._keeper.drop(lease)

    def let_go(self, lease: Lease) -> None:
        self._keeper.drop(lease)
        self._release_later(lease)

    async def _try(self, wish: Wish, server: UUID | None, began: float) -> Lease | Refusal:
        request = SlotRequest(
            name=wish.name,
            slots=wish.slots,
            ttl=wish.ttl,
            token=uuid4(),
            owner=self._owner(),
            server=server,
            start=int(random.random() * wish.slots),  # noqa: S311  it spreads load; nothing secret hangs on it
        )
        asked = clock()
        try:
            with self._in_time(wish.ttl):
                answer = await self._backend.acquire(request)
        except BaseException:
            # The slot may have been granted without our hearing of it.
            self._keeper.release_later(request.name, request.token, timedelta(0), wish.ttl, held=False)
            raise
        self._compare(request, answer.peers)
        if isinstance(answer, Refusal):
            self._refused(wish, answer, asked)
            return answer
        return self._granted(wish, request, answer, asked, began)

    def _granted(self, wish: Wish, request: SlotRequest, grant: Grant, asked: float, began: float) -> Lease:
        lease = Lease(request, grant, self, asked=asked, at_least=wish.at_least, on_lost=wish.on_lost)
        self._keeper.keep(lease, wish.warn_after)
        now = clock()
        if grant.expired is not None:
            self._emit(SlotExpired(name=wish.name, slot=grant.slot, owner=grant.expired))
        self._emit(
            SlotAcquired(
                name=wish.name,
                slot=grant.slot,
                fence=grant.fence,
                owner=request.owner,
                waited=timedelta(seconds=now - began),
                took=timedelta(seconds=now - asked),
            )
        )
        return lease

    def _refused(self, wish: Wish, refusal: Refusal, asked: float) -> None:
        took = timedelta(seconds=clock() - asked)
        self._emit(SlotRefused(name=wish.name, slots=wish.slots, holders=refusal.peers.holders, took=took))

    def _compare(self, asked: SlotRequest, peers: Peers) -> None:
        """Say it once, until holders agree again."""
        found = peers.disagreeing(asked.slots)
        if found is None:
            if self._disagreements:
                self._disagreements = {each for each in self._disagreements if each[0] != asked.name}
            return
        theirs, whose = found
        if (key := (asked.name, asked.slots, theirs)) not in self._disagreements:
            self._disagreements.add(key)
            self._emit(SlotsDisagree(name=asked.name, owner=asked.owner, slots=asked.slots, other=whose, theirs=theirs))

    def _release_later(self, lease: Lease) -> None:
        self._keeper.release_later(lease.name, lease.token, lease.at_least, lease.remaining())

    def _in_time(self, ttl: timedelta) -> _InTime:
        return _InTime(self._backend.where, min(ttl.total_seconds(), _PATIENCE))


class _InTime:
    """A lock service that says nothing is one that is not there.

    Not `asyncio.timeout`: it is entered twice for each hold, and this costs half as much.
    """

    def __init__(self, where: str, limit: float) -> None:
        self._where, self._limit = where, limit
        self._late = False

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task(loop)
        self._requests_before = self._task.cancelling() if self._task else 0
        self._timer = loop.call_later(self._limit, self._expire)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self._timer.cancel()
        if not self._late or self._task is None:
            return
        if self._task.uncancel() <= self._requests_before and isinstance(error, asyncio.CancelledError):
            reason = f"no answer within {self._limit:.3g} s"
            raise LockServiceUnavailable(where=self._where, reason=reason) from error

    def _expire(self) -> None:
        self._late = True
        if self._task is not None:
            self._task.cancel()


def _pause(refusal: Refusal, pause: float) -> float:
    """About as long as the pause says, but no longer than until the first lease may run out."""
    wanted = pause * random.uniform(0.5, 1)  # noqa: S311  see above
    return wanted if refusal.free_in is None else min(wanted, refusal.free_in.total_seconds() + 0.001)
