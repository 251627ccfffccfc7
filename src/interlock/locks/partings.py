"""Slots that the keeper gives back, because whoever asked for them could not.

A release that failed is tried again. A caller that went away while it asked for a slot does not know whether it got
one, and its question may even be carried out after our first try to give back what it brings: a server that stood still
answers in an order of its own. So "not held" ends the trying only for a slot that was held for certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from interlock.locks.deadline import clock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import timedelta
    from uuid import UUID

_FIRST_PAUSE = 0.02
_AFTER_FAILURE = 0.5


@dataclass(eq=False)
class Parting:
    name: str
    token: UUID
    at_least: timedelta
    until: float
    """When the lease, if there is one, has run out by itself."""
    held: bool
    due: float = 0.0
    pause: float = _FIRST_PAUSE


class Partings:
    """Added from any thread, worked off in the keeper's."""

    def __init__(self) -> None:
        self._waiting: list[Parting] = []

    def add(self, parting: Parting) -> None:
        self._waiting.append(parting)

    def next_moment(self) -> float:
        return min((each.due for each in tuple(self._waiting)), default=float("inf"))

    async def work_off(self, release: Callable[[Parting], Awaitable[bool]], *, before: Callable[[], float]) -> None:
        """Try those that are due, until `before`; the first failure ends it, because the others would fail.

        One that was never tried comes first: there may be hundreds that are tried again in vain.
        """
        while (now := clock()) < before() and (due := self._first(now)) is not None:
            await self._try(due, release)

    async def try_all(self, release: Callable[[Parting], Awaitable[bool]]) -> None:
        """Once, whether they are due or not."""
        now = clock()
        for each in sorted(self._waiting, key=lambda parting: parting.due):
            if each.until > now:
                await self._try(each, release)

    def _first(self, now: float) -> Parting | None:
        waiting = tuple(self._waiting)
        for each in waiting:
            if each.until <= now:
                self._waiting.remove(each)
        due = (each for each in waiting if each.due <= now < each.until)
        return min(due, key=lambda parting: parting.due, default=None)

    async def _try(self, parting: Parting, release: Callable[[Parting], Awaitable[bool]]) -> None:
        try:
            released = await release(parting)
        except Exception:
            for each in tuple(self._waiting):
                each.due = clock() + _AFTER_FAILURE
            raise
        parting.due, parting.pause = clock() + parting.pause, parting.pause * 2
        if released or parting.held:
            self._waiting.remove(parting)
