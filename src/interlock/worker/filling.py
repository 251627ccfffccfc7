"""Who fills the free slots: the claim loop or the dispatcher of this server, never both at once.

Whoever fills has all slots that were free when it began, and a token under which what it gets is held. A fill whose
answer was lost may have been committed: nobody fills before it was looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from interlock.model.execution import Reservation

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from interlock.worker.slots import Slots


class Filling:
    def __init__(self, slots: Slots, *, server: Callable[[], UUID | None], host: str) -> None:
        self._slots, self._server, self._host = slots, server, host
        self._current: Reservation | None = None
        self._is_unsure = False

    @property
    def in_flight(self) -> bool:
        """Whether an answer is still to be expected."""
        return self._current is not None and not self._is_unsure

    @property
    def unanswered(self) -> Reservation | None:
        """What is to be looked up before anything else."""
        return self._current if self._is_unsure else None

    def reserve(self, ahead: int = 0) -> Reservation | None:
        """The free slots, and room for so many more; None while another has them, and where there is no room."""
        server, room = self._server(), self._slots.free + ahead
        if server is None or not room or self._current is not None:
            return None
        self._current = Reservation(server, self._host, uuid4(), room)
        return self._current

    def answered(self) -> None:
        self._current, self._is_unsure = None, False

    def unsure(self) -> None:
        """The answer will not come; what was asked for may have happened."""
        self._is_unsure = self._current is not None
