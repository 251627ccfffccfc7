"""How many have an app open in this process: it is closed by the last of them, so that nobody closes it for others."""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress


class Openings:
    """Called from any thread; a forked child has none of its parent's."""

    def __init__(self) -> None:
        # No lock, which a child could inherit held: appending and popping are each one step.
        self._of_process: dict[int, deque[None]] = {}

    def enter(self) -> None:
        self._mine.append(None)

    def leave(self) -> bool:
        """Whether nobody has it open any more."""
        with suppress(IndexError):  # what was opened on first use, without being entered
            self._mine.pop()
        return not self._mine

    @property
    def _mine(self) -> deque[None]:
        return self._of_process.setdefault(os.getpid(), deque())
