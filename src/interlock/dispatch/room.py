"""How much this server's worker can take: never dispatch further ahead than somebody can run it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from interlock.model.execution import Claim, Reservation

ONE_BATCH = 100


class Hands(Protocol):
    """What a worker can take now."""

    @property
    def free(self) -> int:
        """How many slots are free."""

    @property
    def trains(self) -> Mapping[str, object]:
        """The trains it can run, by every name they go by."""

    @property
    def claimed(self) -> int:
        """How many jobs it has ever claimed."""

    def limits(self) -> Iterable[tuple[tuple[str, ...], int]]:
        """The names of each train with a limit of its own, and how many more of it may run."""

    @property
    def has_limits(self) -> bool:
        """Whether any train has a limit of its own."""


class DirectHands(Protocol):
    """A worker whose free slots the dispatcher fills itself."""

    def reserve(self) -> Reservation | None:
        """The free slots; None where there are none now. Whoever reserves ends it with `take_up` or `unsure`."""

    def take_up(self, reservation: Reservation, claims: list[Claim]) -> None:
        """Run these; what is left of the reservation is free again."""

    def unsure(self) -> None:
        """The answer was lost: whoever owns the slots looks up what happened."""

    def wake(self) -> None:
        """There are jobs to be claimed."""


class NoHands:
    """A server without a worker."""

    free = 0
    claimed = 0
    has_limits = False

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


class Ahead:
    """How many jobs were dispatched here that nobody has claimed yet, as far as this server knows by itself.

    Counting them in the database would read a table that is full of what was just deleted. What this server dispatched
    less what its worker claimed is never too low for the fleet as a whole: a job that another claimed still counts
    here, and one that was claimed from another counts there. It may be too high; so whoever finds no room counts after
    all.
    """

    def __init__(self, hands: Hands) -> None:
        self._hands, self._unclaimed, self._claimed = hands, 0, hands.claimed

    def dispatched(self, jobs: int) -> None:
        self._unclaimed += jobs

    def counted(self, jobs: int) -> None:
        """What the database says."""
        self._unclaimed, self._claimed = jobs, self._hands.claimed

    def is_enough(self, limit: int | None) -> bool:
        """Whether the worker has more to claim than its free slots and half a batch: there is no hurry to add to it."""
        return self.unclaimed > max(self._hands.free, (limit or ONE_BATCH) // 2)

    @property
    def unclaimed(self) -> int:
        claimed = self._hands.claimed
        self._unclaimed, self._claimed = max(self._unclaimed - (claimed - self._claimed), 0), claimed
        return self._unclaimed


def room_by_estimate(hands: Hands, unclaimed: int, *, limit: int | None) -> Room | None:
    """Free slots and one batch, less what waits already; a cycle goes beyond its limit only into free slots.

    None says that it takes a count to tell: there seems to be no room, or a train has a limit of its own.
    """
    if any(True for _ in hands.limits()):
        return None
    room = Room(_total(hands, unclaimed, limit))
    return room if room.total > 0 else None


def room_by_count(hands: Hands, waiting: Mapping[str, int], *, limit: int | None) -> Room:
    """The same, by what waits of each train.

    A train with a limit of its own is dispatched no further than that, and what waits of it beyond its limit takes no
    room away from the others.
    """
    return _limited(Room(_total(hands, claimable(hands, waiting), limit)), hands, waiting)


def room_in_slots(hands: Hands, waiting: Mapping[str, int], *, slots: int) -> Room:
    """So many slots, less what waits to be claimed: that comes first."""
    return _limited(Room(slots - claimable(hands, waiting)), hands, waiting)


def claimable(hands: Hands, waiting: Mapping[str, int]) -> int:
    """How many of the jobs that wait this worker could claim, if it had the slots."""
    unclaimed = dict(waiting)
    limited = sum(min(left, sum(unclaimed.pop(name, 0) for name in names)) for names, left in hands.limits())
    return limited + sum(unclaimed.values())


def _limited(room: Room, hands: Hands, waiting: Mapping[str, int]) -> Room:
    for names, left in hands.limits():
        room.limit(names, max(left - sum(waiting.get(name, 0) for name in names), 0))
    return room


def _total(hands: Hands, taken: int, limit: int | None) -> int:
    free = max(hands.free, 0)
    ahead = free + (limit or ONE_BATCH) - taken
    return ahead if limit is None else min(ahead, max(limit, free))
