"""The keeper of lock leases: one thread, with its own event loop and connection, that renews what is held.

It starts with the first lease and renews each after a third of its ttl, all that are due in one round trip. A failure
is tried again until the local deadline, then the lease is declared lost; an answer that a lease is not held any more
loses it at once. A body that blocks its own event loop loses nothing.
"""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.locks.deadline import clock
from interlock.locks.lease import UNKNOWN
from interlock.observe.events.lock import SlotHeldLong, SlotRenewalFailed
from interlock.runtime.loop import Loop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from uuid import UUID

    from interlock.locks.backend import Line
    from interlock.locks.lease import Lease
    from interlock.observe.bus import Emit

_PARTS = 3  # a lease survives two renewals that failed
_SLACK = 0.05  # what is due so soon goes along in the same round trip
_IDLE = 60.0
_QUICKEST, _SLOWEST = 0.02, 0.5  # pauses between tries


@dataclass(eq=False)
class _Kept:
    lease: Lease
    due: float
    warn_at: float | None

    def next_moment(self) -> float:
        end = clock() + self.lease.remaining().total_seconds()
        return min(self.due, end, end if self.warn_at is None else self.warn_at)


@dataclass(frozen=True)
class _Parting:
    """A slot that could not be given back, or may have been granted without our hearing of it."""

    name: str
    token: UUID
    at_least: timedelta
    until: float


class LockKeeper:
    def __init__(self, open_line: Callable[[], Awaitable[Line]], *, emit: Emit) -> None:
        self._open_line, self._emit = open_line, emit
        self._guard = threading.Lock()
        self._kept: dict[UUID, _Kept] = {}
        self._partings: list[_Parting] = []
        self._line: Line | None = None
        self._failures = 0
        self._planned = float("inf")
        self._loop: Loop | None = None
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def keep(self, lease: Lease, warn_after: timedelta | None = None) -> None:
        """Renew this lease from now on, until it is dropped or lost."""
        warn_at = None if warn_after is None else lease.began + warn_after.total_seconds()
        due = clock() + lease.ttl.total_seconds() / _PARTS
        with self._guard:
            self._begin()
            self._kept[lease.token] = _Kept(lease, due, warn_at)
        self._wake_by(due if warn_at is None else min(due, warn_at))

    def drop(self, lease: Lease) -> None:
        """The holder gives it back itself."""
        self._kept.pop(lease.token, None)

    def release_later(self, name: str, token: UUID, at_least: timedelta, within: timedelta) -> None:
        """Give back what its holder could not, for as long as the lease may run."""
        with self._guard:
            self._begin()
            self._partings.append(_Parting(name, token, at_least, clock() + within.total_seconds()))
        self._wake_by(0)

    def close(self) -> None:
        """End the thread; leases that are still held run out."""
        with self._guard:
            thread, loop, self._thread, self._loop = self._thread, self._loop, None, None
        if thread is not None and loop is not None and self._pid == os.getpid():
            loop.stop()
            thread.join(5)

    def _begin(self) -> None:
        if self._pid != os.getpid():  # the thread stayed behind in the parent, and so do its leases
            self._kept, self._partings, self._line, self._thread, self._pid = {}, [], None, None, os.getpid()
        if self._thread is None or not self._thread.is_alive():
            self._loop = loop = Loop("lock keeper", self._tick, emit=self._emit)
            self._thread = threading.Thread(
                target=lambda: asyncio.run(self._serve(loop)), name="interlock-lock-keeper", daemon=True
            )
            self._thread.start()

    def _wake_by(self, moment: float) -> None:
        """Waking costs the caller a switch of threads, so only those pay for whom the keeper would come too late."""
        if moment < self._planned and (loop := self._loop) is not None:
            loop.wake()

    async def _serve(self, loop: Loop) -> None:
        try:
            await loop.run()
        finally:
            await self._hang_up()

    async def _tick(self) -> timedelta:
        self._planned = float("inf")  # whoever comes during the tick wakes the next one
        await self._part()
        kept, now = list(self._kept.values()), clock()
        due = [each for each in kept if each.due <= now + _SLACK]
        if due:
            await self._renew(due)
        self._look_after(kept)
        self._planned = planned = self._next_moment()
        return timedelta(seconds=max(planned - clock(), 0))

    async def _renew(self, due: Sequence[_Kept]) -> None:
        asked, held = clock(), [each.lease.held for each in due]
        try:
            async with asyncio.timeout(_patience(due)):
                answers = await (await self._connected()).extend(held)
        except Exception as error:  # noqa: BLE001  whatever it is, only the deadline ends the trying
            await self._failed(due, error)
            return
        self._failures = 0
        for each, before in zip(due, held, strict=True):
            if (remaining := answers.get(before.token)) is not None:
                each.lease.renewed(asked, remaining, before.ttl)
                each.due = asked + before.ttl.total_seconds() / _PARTS
            else:
                self._lose(each, UNKNOWN)

    async def _failed(self, due: Sequence[_Kept], error: Exception) -> None:
        self._failures += 1
        await self._hang_up()
        for each in due:
            each.due = clock() + min(max(each.lease.ttl.total_seconds() / 20, _QUICKEST), _SLOWEST)
        first = min(each.lease.remaining() for each in due)
        failure = SlotRenewalFailed(error=error, leases=len(due), remaining=first, consecutive=self._failures)
        self._emit(failure)

    def _look_after(self, kept: Sequence[_Kept]) -> None:
        for each in kept:
            if each.lease.lost:
                self._lose(each)
            elif each.warn_at is not None and each.warn_at <= clock() and each.lease.token in self._kept:
                each.warn_at, lease = None, each.lease
                self._emit(SlotHeldLong(name=lease.name, slot=lease.slot, held_for=lease.held_for))

    def _lose(self, kept: _Kept, reason: str | None = None) -> None:
        lease = kept.lease
        if self._kept.pop(lease.token, None) is None or lease.ended:
            return
        lease.declare_lost(*([reason] if reason else []))
        if told := lease.tell_loss():
            self._emit(told)

    async def _part(self) -> None:
        with self._guard:
            partings, self._partings = self._partings, []
        for each in partings:
            if each.until > clock() and not await self._released(each):
                self._partings.append(each)

    async def _released(self, parting: _Parting) -> bool:
        try:
            async with asyncio.timeout(max(parting.until - clock(), 0)):
                await (await self._connected()).release(parting.name, parting.token, parting.at_least)
        except Exception:  # noqa: BLE001  the slot becomes free by itself when its lease runs out
            await self._hang_up()
            return False
        return True

    def _next_moment(self) -> float:
        moments = [clock() + _IDLE, *(each.next_moment() for each in list(self._kept.values()))]
        if self._partings:
            moments.append(clock() + _SLOWEST)
        return min(moments)

    async def _connected(self) -> Line:
        if self._line is None:
            self._line = await self._open_line()
        return self._line

    async def _hang_up(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            with suppress(Exception):
                async with asyncio.timeout(1):
                    await line.close()


def _patience(due: Sequence[_Kept]) -> float:
    """An answer that takes longer is none: there must be time left for another try."""
    return max(min(each.lease.remaining().total_seconds() / 2 for each in due), _QUICKEST)
