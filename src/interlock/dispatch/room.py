"""How much this server's worker can take: never dispatch further ahead than somebody can run it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

ONE_BATCH = 100


class Hands(Protocol):
    """What a worker can take now."""

    @property
    def free(self) -> int:
        """How many slots are free."""

    @property
    def trains(self) -> Mapping[str, object]:
        """The trains it can run, by every name they go by."""

    def limits(self) -> Iterable[tuple[tuple[str, ...], int]]:
        """The names of each train with a limit of its own, and how many more of it may run."""


class NoHands:
    """A server without a worker."""

    free = 0

    def __init__(self) -> None:
        self.trains: dict[str, object] = {}

    def limits(self) -> Iterable[tuple[tuple[str, ...], int]]:
        return ()


@dataclass(slots=True)
class Room:
    """How many may go in all, and how many of each train that has a limit of its own."""

    total: int
    _left: dict[str, list[int]] = field(default_factory=dict)

    def limit(self, names: Collection[str], left: int) -> None:
        """The names of one train share what is left of it."""
        shared = [left]
        self._left.update(dict.fromkeys(names, shared))

    def most(self, train: str) -> int:
        return min(self.total, self._left[train][0]) if train in self._left else self.total

    def take(self, train: str) -> None:
        self.total -= 1
        if train in self._left:
            self._left[train][0] -= 1


def room_for(hands: Hands, waiting: Mapping[str, int], *, limit: int | None) -> Room:
    """Free slots and one batch, less what waits already; a cycle goes beyond its limit only into free slots.

    A train with a limit of its own is dispatched no further than that, and what waits of it beyond its limit takes no
    room away from the others.
    """
    unclaimed, free = dict(waiting), max(hands.free, 0)
    limits = [(names, left, sum(unclaimed.pop(name, 0) for name in names)) for names, left in hands.limits()]
    taken = sum(unclaimed.values()) + sum(min(left, queued) for _, left, queued in limits)
    ahead = free + (limit or ONE_BATCH) - taken
    room = Room(ahead if limit is None else min(ahead, max(limit, free)))
    for names, left, queued in limits:
        room.limit(names, max(left - queued, 0))
    return room
