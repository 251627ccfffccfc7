"""A hold that lives and dies with the user's own PostgreSQL transaction.

The hold is the row lock on a slot: it needs no lease, no renewal and no release, and it is there exactly as long as the
transaction that also writes the work it protects. The rows are made beforehand, on a connection of our own, because
rows that the user's transaction inserted would be invisible to all others until it commits.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from interlock.errors import InvalidOption, InvalidSetting
from interlock.locks.options import checked_slots
from interlock.runtime.portal import portal
from interlock.store.adapters.choose import adapt, adapt_blocking
from interlock.store.adapters.protocol import run, run_blocking
from interlock.store.lock_slot import LockSlots, Unsettled
from interlock.trains.names import checked_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from interlock.locks.settings import LockSettings
    from interlock.model.lease import SlotInTransaction
    from interlock.store.adapters.protocol import AsyncAdapter, BlockingAdapter
    from interlock.store.database import Database


AGREEMENTS = 3  # others who want another N may come between what was agreed on and our taking it


class TransactionHolds:
    def __init__(self, settings: LockSettings, namespace: str, database: Callable[[], Awaitable[Database]]) -> None:
        self._settings, self._namespace, self._database = settings, namespace, database

    async def take(self, conn: Any, name: str, slots: int) -> SlotInTransaction | None:
        """The slot, or None if every one is taken; it never waits."""
        adapter = adapt(conn)
        self._check(name, slots)
        rows, start = await self._rows(), _anywhere(slots)
        found = await run(adapter, rows.lock_in_transaction(name, slots, start))
        for _ in range(AGREEMENTS):
            if not isinstance(found, Unsettled):
                break
            await self._agree(name, slots, start)
            found = await run(adapter, rows.lock_in_transaction(name, slots, start))
        return _held(found, adapter)

    def take_blocking(self, conn: Any, name: str, slots: int) -> SlotInTransaction | None:
        """The blocking twin of `take`, for connections whose calls block."""
        adapter = adapt_blocking(conn)
        self._check(name, slots)
        rows, start = portal.call(self._rows), _anywhere(slots)
        found = run_blocking(adapter, rows.lock_in_transaction(name, slots, start))
        for _ in range(AGREEMENTS):
            if not isinstance(found, Unsettled):
                break
            portal.call(self._agree, name, slots, start)
            found = run_blocking(adapter, rows.lock_in_transaction(name, slots, start))
        return _held(found, adapter)

    async def _rows(self) -> LockSlots:
        return LockSlots((await self._database()).sql, self._namespace)

    async def _agree(self, name: str, slots: int, start: int) -> None:
        """On a connection of our own: what the user's transaction writes is invisible to all others."""
        database = await self._database()
        async with database.tick() as own:
            await LockSlots(database.sql, self._namespace).agree(own, name, slots, start)

    def _check(self, name: str, slots: int) -> None:
        checked_name("name", name)
        checked_slots(slots)
        if self._settings.lock_backend != "postgres":
            expected = "'postgres': a row lock is invisible to those who hold the same name in another lock service"
            raise InvalidSetting(setting="lock_backend", found=self._settings.lock_backend, expected=expected)


def _anywhere(slots: int) -> int:
    return random.randrange(slots)  # noqa: S311  it spreads load; nothing secret hangs on it


def _held(
    found: SlotInTransaction | Unsettled | None, adapter: AsyncAdapter | BlockingAdapter
) -> SlotInTransaction | None:
    """Asked afterwards: with some drivers the first statement is what opens the transaction."""
    if not adapter.in_transaction:
        expected = "a connection with an open transaction: without one the hold would end at once"
        raise InvalidOption(option="conn", found="no open transaction", expected=expected)
    return None if isinstance(found, Unsettled) else found
