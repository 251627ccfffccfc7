"""Which trains this worker may take, and how many more of each."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from interlock.trains.registry import Registry
    from interlock.trains.train import Train
    from interlock.worker.job import Job


LIMIT_TAG = "concurrency:"
"""How the registry of servers shows how many of a train run there at once."""


class Slots:
    """The jobs that this worker holds, running or standing by. A train may run only where all of its tags are."""

    def __init__(self, registry: Registry, *, slots: int, tags: Iterable[str] = ()) -> None:
        self.total, self.tags = slots, frozenset(tags)
        self.held: dict[int, Job] = {}
        self.claimed = 0
        self.trains: dict[str, Train[..., Any, Any]] = {
            name: train for train in registry if train.options.tags <= self.tags for name in _names(train)
        }
        self._limited = {train.name: train for train in self.trains.values() if train.options.concurrency is not None}
        self._unlimited = sorted(name for name, train in self.trains.items() if train.name not in self._limited)
        self._counts: Counter[str] = Counter()

    @property
    def free(self) -> int:
        return max(self.total - len(self.held), 0)

    @property
    def limit_tags(self) -> tuple[str, ...]:
        limits = ((train.options.concurrency, name) for train in self._limited.values() for name in _names(train))
        return tuple(f"{LIMIT_TAG}{limit}:{name}" for limit, name in limits)

    @property
    def has_limits(self) -> bool:
        return bool(self._limited)

    def claimable(self) -> Iterator[tuple[list[str], int]]:
        """Names and how many of them to claim; asked again after each claim, as the slots fill."""
        if self._unlimited and self.free:
            yield self._unlimited, self.free
        for train in self._limited.values():
            left = min(self.free, (train.options.concurrency or 0) - self._counts[train.name])
            if left > 0:
                yield sorted(_names(train)), left

    def limits(self) -> Iterator[tuple[tuple[str, ...], int]]:
        """The names of each train that has a limit of its own, and how many more of it may run here."""
        for train in self._limited.values():
            yield _names(train), max((train.options.concurrency or 0) - self._counts[train.name], 0)

    def take(self, job: Job) -> None:
        self.held[job.execution_id] = job
        self.claimed += 1
        if job.declaration.name in self._limited:
            self._counts[job.declaration.name] += 1

    def give_back(self, job: Job) -> None:
        del self.held[job.execution_id]
        if job.declaration.name in self._limited:
            self._counts[job.declaration.name] -= 1


def _names(train: Train[..., Any, Any]) -> tuple[str, ...]:
    return (train.name, *train.options.aliases)
