"""Dead letters in the hands of people, as `app.dead_letters`: looked at, queued again, or closed with a note."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from interlock.errors import UnknownDeadLetter
from interlock.model.act import actor_named
from interlock.model.bounds import checked_id, checked_limit
from interlock.model.dead_letter import DeadLetterFilter
from interlock.runtime.portal import portal
from interlock.store.dead_letter import DeadLetters
from interlock.trains.options import refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from interlock.model.act import Actor
    from interlock.model.dead_letter import DeadLetter
    from interlock.operate.commands import Commands
    from interlock.operate.resolve import Resolved


class Wanted(TypedDict, total=False):
    """Which of the open ones are meant; what is left out does not narrow the choice."""

    train: str | None
    manifest: str | None
    group: str | None
    failure: str | None


class DeadLetterDesk:
    """Of two who resolve the same dead letter at once, one wins and the other gets AlreadyResolved."""

    def __init__(self, commands: Callable[[], Commands]) -> None:
        self._commands = commands

    async def arequeue(self, dead_letter_id: int, *, actor: Actor | str | None = None, note: str | None = None) -> int:
        """Queue the work again from its first attempt; answers the new entry."""
        return await self._by(actor, note).requeue(dead_letter_id)

    async def aacknowledge(
        self, dead_letter_id: int, *, note: str | None = None, actor: Actor | str | None = None
    ) -> None:
        """Close it without running anything; its manifest goes on with its schedule."""
        await self._by(actor, note).acknowledge(dead_letter_id)

    async def arequeue_all(
        self, *, actor: Actor | str | None = None, note: str | None = None, **wanted: Unpack[Wanted]
    ) -> Resolved:
        """Queue again all that fit; answers the entry of each."""
        return await self._by(actor, note).requeue_many(_filter(wanted))

    async def aacknowledge_all(
        self, *, actor: Actor | str | None = None, note: str | None = None, **wanted: Unpack[Wanted]
    ) -> Resolved:
        """Close all that fit."""
        return await self._by(actor, note).acknowledge_many(_filter(wanted))

    async def alist(self, *, after: int = 0, limit: int = 100) -> list[DeadLetter]:
        """Those that wait for a person, oldest first."""
        checked_id("after", after)
        checked_limit(limit)
        database = await self._commands().adatabase()
        letters = DeadLetters(database.sql)
        async with database.connection() as conn:
            ids = await letters.choose(conn, DeadLetterFilter(), after=after, limit=limit)
            return list((await letters.get(conn, ids)).values())

    async def aget(self, dead_letter_id: int) -> DeadLetter:
        checked_id("dead_letter_id", dead_letter_id)
        database = await self._commands().adatabase()
        async with database.connection() as conn:
            found = await DeadLetters(database.sql).get(conn, [dead_letter_id])
        if not found:
            raise UnknownDeadLetter(name=str(dead_letter_id))
        return found[dead_letter_id]

    def requeue(self, dead_letter_id: int, *, actor: Actor | str | None = None, note: str | None = None) -> int:
        """The blocking twin of `arequeue`."""
        return portal.call(self.arequeue, dead_letter_id, actor=actor, note=note)

    def acknowledge(self, dead_letter_id: int, *, note: str | None = None, actor: Actor | str | None = None) -> None:
        """The blocking twin of `aacknowledge`."""
        portal.call(self.aacknowledge, dead_letter_id, note=note, actor=actor)

    def requeue_all(
        self, *, actor: Actor | str | None = None, note: str | None = None, **wanted: Unpack[Wanted]
    ) -> Resolved:
        """The blocking twin of `arequeue_all`."""
        return portal.call(self.arequeue_all, actor=actor, note=note, **wanted)

    def acknowledge_all(
        self, *, actor: Actor | str | None = None, note: str | None = None, **wanted: Unpack[Wanted]
    ) -> Resolved:
        """The blocking twin of `aacknowledge_all`."""
        return portal.call(self.aacknowledge_all, actor=actor, note=note, **wanted)

    def list(self, *, after: int = 0, limit: int = 100) -> list[DeadLetter]:
        """The blocking twin of `alist`."""
        return portal.call(self.alist, after=after, limit=limit)

    def get(self, dead_letter_id: int) -> DeadLetter:
        """The blocking twin of `aget`."""
        return portal.call(self.aget, dead_letter_id)

    def _by(self, actor: Actor | str | None, note: str | None) -> Commands:
        return self._commands().by(actor_named(actor), note=note)


def _filter(wanted: Wanted) -> DeadLetterFilter:
    """A misspelt filter is refused here: left out, it would mean all."""
    refuse_unknown(wanted, Wanted)
    return DeadLetterFilter(**wanted)
