"""What was asked of the database, got no answer and was not found afterwards. A statement whose client is gone goes on,
so it may be committed after the look: it is looked for again, for a while.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")

EVERY, MOST = 1.0, 20
LATEST = 600.0
"""Seconds after which no statement is expected to go on; so long may it wait for a lock, or for a disk that hangs."""


class Doubts(Generic[T]):
    def __init__(self) -> None:
        self._doubts: deque[tuple[float, T]] = deque(maxlen=MOST)
        self._next_at = 0.0

    def __bool__(self) -> bool:
        return bool(self._doubts)

    def add(self, what: T) -> None:
        self._doubts.append((time.monotonic() + LATEST, what))

    def due(self) -> list[T]:
        """What to look for now; each for the last time once it is old."""
        now, due = time.monotonic(), [what for _, what in self._doubts]
        if now < self._next_at or not due:
            return []
        self._next_at = now + EVERY
        for doubt in tuple(self._doubts):
            if doubt[0] < now:
                self._doubts.remove(doubt)
        return due

    def found(self, what: T) -> None:
        """It was committed after all, and once."""
        self._doubts = deque((doubt for doubt in self._doubts if doubt[1] != what), maxlen=MOST)
