"""The keeper of lock leases: one thread, with its own event loop and connection, that renews what is held.

It starts with the first lease and renews each after a third of its ttl, all that are due in one round trip for each
server that keeps slots: one that does not answer costs the others a delay and not their leases. A failure
is tried again until the local deadline, then the lease is declared lost; an answer that a lease is not held any more
loses it at once. A body that blocks its own event loop loses nothing. No answer is waited for so long that another
lease runs out meanwhile, unless that one is too short for a new connection.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections import defaultdict
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.locks.deadline import clock
from interlock.locks.lease import UNKNOWN
from interlock.locks.partings import Parting, Partings
from interlock.observe.events.lock import SlotHeldLong, SlotRenewalFailed
from interlock.runtime.loop import Loop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from uuid import UUID

    from interlock.locks.backend import Line
    from interlock.locks.lease import Lease
    from interlock.observe.bus import Emit

_PARTS = 3  # a lease survives two renewals that failed
_SLACK = 0.05  # what is due so soon goes along in the same round trip
_IDLE = 60.0
_QUICKEST, _SLOWEST = 0.02, 0.5  # pauses between tries
_PATIENCE = 5.0  # seconds that one answer may take
_LEAST = 0.25  # seconds for a new connection and an answer: without them nobody's lease is renewed
_LAST_TRY = 1.0  # seconds that whoever closes may wait for what could not be given back before

_inherited: list[object] = []


class _Kept:
    def __init__(self, lease: Lease, warn_after: timedelta | None) -> None:
        self.lease = lease
        self.warn_at = float("inf") if warn_after is None else lease.began + warn_after.total_seconds()
        self.was_renewed()

    def was_renewed(self) -> None:
        self.due = self.lease.answered + self.lease.ttl.total_seconds() / _PARTS

    def next_moment(self) -> float:
        return min(self.due, self.warn_at, clock() + self.lease.remaining().total_seconds())


class LockKeeper:
    def __init__(self, open_line: Callable[[], Awaitable[Line]], *, emit: Emit) -> None:
        self._open_line, self._emit = open_line, emit
        self._guard = threading.Lock()
        self._kept: dict[UUID, _Kept] = {}
        self._partings = Partings()
        self._line: Line | None = None
        self._failures = 0
        self._planned = float("inf")
        self._loop: Loop | None = None
        self._thread: threading.Thread | None = None
        _keepers.add(self)

    def keep(self, lease: Lease, warn_after: timedelta | None = None) -> None:
        """Renew this lease from now on, until it is dropped or lost; called again when its ttl has changed."""
        with self._guard:
            self._begin()
            if (kept := self._kept.get(lease.token)) is None:
                kept = self._kept[lease.token] = _Kept(lease, warn_after)
            else:
                kept.was_renewed()
        self._wake_by(min(kept.due, kept.warn_at))

    def drop(self, lease: Lease) -> None:
        """The holder gives it back itself."""
        self._kept.pop(lease.token, None)

    def release_later(
        self, name: str, token: UUID, at_least: timedelta, within: timedelta, *, held: bool = True
    ) -> None:
        """Give back what its holder could not, for as long as the lease may run."""
        with self._guard:
            self._begin()
            self._partings.add(Parting(name, token, at_least, clock() + within.total_seconds(), held))
        self._wake_by(0)

    def close(self) -> None:
        """End the thread; leases that are still held run out."""
        with self._guard:
            thread, loop, self._thread, self._loop = self._thread, self._loop, None, None
        if thread is not None and loop is not None:
            loop.stop()
            thread.join(5)

    def _begin(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._loop = loop = Loop("lock keeper", self._tick, emit=self._emit)
            self._thread = threading.Thread(
                target=lambda: asyncio.run(self._serve(loop)), name="interlock-lock-keeper", daemon=True
            )
            self._thread.start()

    def _forget(self) -> None:
        """In a forked child: the thread stayed behind in the parent, and so do its leases and its connection."""
        _inherited.append((self._kept, self._line, self._loop, self._thread))
        self._guard, self._kept, self._partings = threading.Lock(), {}, Partings()
        self._line, self._loop, self._thread, self._planned = None, None, None, float("inf")

    def _wake_by(self, moment: float) -> None:
        """Waking costs the caller a switch of threads, so only those pay for whom the keeper would come too late."""
        if moment < self._planned and (loop := self._loop) is not None:
            loop.wake()

    async def _serve(self, loop: Loop) -> None:
        try:
            await loop.run()
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_TRY):
                    await self._part(self._partings.try_all(self._released))
            await self._hang_up()

    async def _tick(self) -> timedelta:
        self._planned = float("inf")  # whoever comes during the tick wakes the next one
        kept, now = list(self._kept.values()), clock()
        due = [each for each in kept if each.due <= now + _SLACK]
        for together in await self._by_server(due):
            await self._renew(together)
        self._look_after(kept)
        await self._part(self._partings.work_off(self._released, before=self._next_renewal))
        self._planned = planned = self._next_moment()
        return timedelta(seconds=max(planned - clock(), 0))

    async def _by_server(self, due: Sequence[_Kept]) -> Iterable[Sequence[_Kept]]:
        if not due:
            return ()
        try:
            async with asyncio.timeout(self._patience()):
                line = await self._connected()
        except Exception as error:  # noqa: BLE001  see below
            await self._failed(due, error)
            return ()
        together: defaultdict[str, list[_Kept]] = defaultdict(list)
        for each in due:
            together[line.server_of(each.lease.name)].append(each)
        return together.values()

    async def _renew(self, due: Sequence[_Kept]) -> None:
        asked, held = clock(), [each.lease.held for each in due]
        try:
            async with asyncio.timeout(self._patience()):
                answers = await (await self._connected()).extend(held)
        except Exception as error:  # noqa: BLE001  whatever it is, only the deadline ends the trying
            await self._failed(due, error)
            return
        self._failures = 0
        for each, before in zip(due, held, strict=True):
            if (remaining := answers.get(before.token)) is not None:
                each.lease.renewed(asked, remaining)
                each.was_renewed()
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
            elif each.warn_at <= clock() and each.lease.token in self._kept:
                each.warn_at, lease = float("inf"), each.lease
                self._emit(SlotHeldLong(name=lease.name, slot=lease.slot, held_for=lease.held_for))

    def _lose(self, kept: _Kept, reason: str | None = None) -> None:
        lease = kept.lease
        if self._kept.pop(lease.token, None) is None or lease.ended:
            return
        lease.declare_lost(*([reason] if reason else []))
        if told := lease.tell_loss():
            self._emit(told)

    async def _part(self, partings: Awaitable[None]) -> None:
        try:
            await partings
        except Exception:  # noqa: BLE001  it is tried again; at worst the slot becomes free when its lease runs out
            await self._hang_up()

    async def _released(self, parting: Parting) -> bool:
        async with asyncio.timeout(self._patience()):
            return await (await self._connected()).release(parting.name, parting.token, parting.at_least)

    def _next_moment(self) -> float:
        moments = (each.next_moment() for each in list(self._kept.values()))
        return min([clock() + _IDLE, self._partings.next_moment(), *moments])

    def _next_renewal(self) -> float:
        """Now, once the keeper is closed: whoever waits for its end waits for no more than a last try of each."""
        if self._loop is None:
            return 0
        return min((each.due for each in list(self._kept.values())), default=float("inf"))

    def _patience(self) -> float:
        """An answer that takes longer is none: there must be time left for another try, whatever else is held."""
        halves = (each.lease.remaining().total_seconds() / 2 for each in list(self._kept.values()))
        return max(min([_PATIENCE, *halves]), _LEAST)

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


_keepers: weakref.WeakSet[LockKeeper] = weakref.WeakSet()


def _forget_in_child() -> None:
    for keeper in tuple(_keepers):
        keeper._forget()  # noqa: SLF001  the two are one thing


os.register_at_fork(after_in_child=_forget_in_child)
