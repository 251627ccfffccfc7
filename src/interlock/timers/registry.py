"""`app.timers`: the timers that an app declares, and how the database sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.errors import DeclarationAfterStart, DuplicateName
from interlock.runtime.portal import portal
from interlock.store.timer import Timers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from interlock.store.database import Database
    from interlock.store.timer import TimerRow
    from interlock.timers.timer import Timer


class TimerRegistry:
    def __init__(self, namespace: str, database: Callable[[], Awaitable[Database]]) -> None:
        self.namespace = namespace
        self._database = database
        self._declared: dict[str, Timer] = {}
        self._frozen = False

    @property
    def declared(self) -> tuple[Timer, ...]:
        return tuple(self._declared.values())

    def add(self, timer: Timer) -> None:
        if self._frozen:
            raise DeclarationAfterStart(what=f"timer {timer.name!r}")
        if timer.name in self._declared:
            raise DuplicateName(kind="timer", name=timer.name, hint="give one of them another name=")
        self._declared[timer.name] = timer

    def freeze(self) -> None:
        """From now on declarations are refused: a server runs."""
        self._frozen = True

    async def alist(self, name: str | None = None) -> list[TimerRow]:
        """The timers that servers of this namespace declared, with their last run and their skips by reason."""
        database = await self._database()
        async with database.connection() as conn:
            return await Timers(database.sql, self.namespace).list(conn, name)

    def list(self, name: str | None = None) -> list[TimerRow]:
        """The blocking twin of `alist`."""
        return portal.call(self.alist, name)
