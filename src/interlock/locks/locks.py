"""`app.locks`: at most N holders of a name in the whole fleet."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from interlock.errors import InvalidSetting, LockServiceUnavailable, LockTaken
from interlock.locks.acquire import Acquirer
from interlock.locks.health import Health, HealthState
from interlock.locks.hold import Hold, take_blocking
from interlock.locks.keeper import LockKeeper
from interlock.locks.options import HoldKeywords, checked_slot, checked_wish
from interlock.model.act import Permission, actor_named
from interlock.observe.events.lock import SlotForceReleased
from interlock.runtime.portal import portal, refuse_in_event_loop
from interlock.trains.names import checked_name
from interlock.trains.options import refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Unpack
    from uuid import UUID

    from interlock.locks.backend import Line, LockBackend
    from interlock.locks.force_release import AuditedRelease
    from interlock.locks.lease import Lease
    from interlock.locks.options import Wish
    from interlock.locks.transaction import TransactionHolds
    from interlock.model.act import Actor
    from interlock.model.lease import Holder, SlotInTransaction
    from interlock.observe.bus import Emit

_HEALTH_SLOTS = 16  # checks of one server that may overlap without reporting trouble
_HEALTH_TTL = timedelta(seconds=5)


class Locks:
    """Holds, holders and health of one namespace in one lock service."""

    def __init__(
        self,
        open_backend: Callable[[], Awaitable[LockBackend]],
        *,
        owner: Callable[[], str],
        server_name: str,
        emit: Emit,
        ttl: timedelta = timedelta(seconds=30),
        server: Callable[[], UUID | None] = lambda: None,
        audited: AuditedRelease | None = None,
        transactions: TransactionHolds | None = None,
    ) -> None:
        self._owner, self.server_name, self.ttl = owner, server_name, ttl
        self._open_backend, self._server, self._audited, self._emit = open_backend, server, audited, emit
        self._transactions = transactions
        self._backend: LockBackend | None = None
        self._keeper = LockKeeper(self._line, emit=emit)
        self._acquirer: Acquirer | None = None

    @property
    def owner(self) -> str:
        """Who holds what is taken here: this server and process."""
        return self._owner()

    def hold(self, name: str, slots: int = 1, **options: Unpack[HoldKeywords]) -> Hold:
        """Hold a slot for the length of a `with` or `async with`; raises `LockTaken` when none is free in time."""
        wish = self._wish(name, slots, options)
        return Hold(lambda: self._take_or_raise(wish))

    async def atry_hold(self, name: str, slots: int = 1, **options: Unpack[HoldKeywords]) -> Lease | None:
        """The lease, which is itself a context manager, or None when no slot is free in time."""
        return await self._take(self._wish(name, slots, options))

    def try_hold(self, name: str, slots: int = 1, **options: Unpack[HoldKeywords]) -> Lease | None:
        """The blocking twin of `atry_hold`."""
        refuse_in_event_loop("await atry_hold(…)")
        return take_blocking(lambda: self.atry_hold(name, slots, **options))

    async def ahold_in(self, conn: Any, name: str, slots: int = 1) -> SlotInTransaction:
        """Hold a slot until the transaction of a PostgreSQL connection ends; raises `LockTaken`, never waits."""
        return _taken(await self._in_transactions().take(conn, name, slots), name, slots)

    def hold_in(self, conn: Any, name: str, slots: int = 1) -> SlotInTransaction:
        """The blocking twin of `ahold_in`."""
        return _taken(self._in_transactions().take_blocking(conn, name, slots), name, slots)

    async def atry_hold_in(self, conn: Any, name: str, slots: int = 1) -> SlotInTransaction | None:
        """The same as `ahold_in`, with None instead of `LockTaken`."""
        return await self._in_transactions().take(conn, name, slots)

    def try_hold_in(self, conn: Any, name: str, slots: int = 1) -> SlotInTransaction | None:
        """The blocking twin of `atry_hold_in`."""
        return self._in_transactions().take_blocking(conn, name, slots)

    async def aholders(self, name: str | None = None) -> list[Holder]:
        """Who holds which slot, of one name or of all."""
        return await (await self.abackend()).holders(name)

    def holders(self, name: str | None = None) -> list[Holder]:
        """The blocking twin of `aholders`."""
        return portal.call(self.aholders, name)

    async def aforce_release(
        self, name: str, slot: int = 0, *, actor: Actor | str, note: str | None = None
    ) -> Holder | None:
        """Free a slot whoever holds it, with a row in the audit; the holder hears of it with its next renewal."""
        by = actor_named(actor)
        by.require(Permission.CANCEL)
        checked_name("actor", by.name)
        checked_name("name", name)
        checked_slot(slot)
        backend = await self.abackend()
        if self._audited is None:
            freed = await backend.force_release(name, slot)
        else:
            freed = await self._audited(backend, name, slot, actor=by, note=note)
        if freed is not None:
            self._emit(SlotForceReleased(name=name, slot=slot, fence=freed.fence, owner=freed.owner, actor=by.name))
        return freed

    def force_release(self, name: str, slot: int = 0, *, actor: Actor | str, note: str | None = None) -> Holder | None:
        """The blocking twin of `aforce_release`."""
        return portal.call(self.aforce_release, name, slot, actor=actor, note=note)

    async def ahealth(self) -> Health:
        """Take and give back a slot of this server's own name: peers that check themselves are not in the way."""
        began = time.monotonic()
        wish = checked_wish(f"health:{self.server_name}"[:200], _HEALTH_SLOTS, _HEALTH_TTL, on_lost="mark")
        try:
            lease = await self._take(wish)
            released = lease is not None and await lease.arelease()
        except LockServiceUnavailable as error:
            return Health(HealthState.UNHEALTHY, str(error), _since(began))
        if lease is None:
            return Health(HealthState.DEGRADED, "the test lock could not be taken", _since(began))
        if not released:
            return Health(HealthState.DEGRADED, "the test lock could not be given back", _since(began))
        return Health(HealthState.HEALTHY, "the lock service answers", _since(began))

    def health(self) -> Health:
        """The blocking twin of `ahealth`."""
        return portal.call(self.ahealth)

    async def aclose(self) -> None:
        """Stop renewing and hang up; leases that are still held run out."""
        await asyncio.to_thread(self._keeper.close)
        backend, self._backend, self._acquirer = self._backend, None, None
        if backend is not None:
            await backend.close()

    async def abackend(self) -> LockBackend:
        if self._backend is None:
            opened = await self._open_backend()
            if self._backend is None:  # another task may have been quicker; nothing is open before its first use
                self._backend = opened
        return self._backend

    def _in_transactions(self) -> TransactionHolds:
        if self._transactions is None:
            raise InvalidSetting(setting="lock_backend", found=None, expected="an app with a PostgreSQL database")
        return self._transactions

    async def _line(self) -> Line:
        return await (await self.abackend()).line()

    def _wish(self, name: str, slots: int, options: HoldKeywords) -> Wish:
        refuse_unknown(options, HoldKeywords)
        return checked_wish(name, slots, self.ttl, **options)

    async def _take(self, wish: Wish) -> Lease | None:
        if self._acquirer is None:
            self._acquirer = Acquirer(await self.abackend(), self._keeper, self._owner, emit=self._emit)
        return await self._acquirer.take(wish, self._server())

    async def _take_or_raise(self, wish: Wish) -> Lease:
        lease = await self._take(wish)
        if lease is None:
            raise LockTaken(name=wish.name, slots=wish.slots, waited=wish.wait.total_seconds())
        return lease


def _since(began: float) -> timedelta:
    return timedelta(seconds=time.monotonic() - began)


def _taken(found: SlotInTransaction | None, name: str, slots: int) -> SlotInTransaction:
    if found is None:
        raise LockTaken(name=name, slots=slots)
    return found
