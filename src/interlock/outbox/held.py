"""A message in this worker's hands, and until when it may believe so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.locks.deadline import clock, deadline

if TYPE_CHECKING:
    from datetime import timedelta
    from uuid import UUID

    from interlock.locks.lease import Lease
    from interlock.model.message import Claimed


class Held:
    """The deadline is counted from before the claim was asked for, so it lies before the lease's own end."""

    __slots__ = ("_deadline", "_good_until", "claimed", "lane", "started", "token")

    def __init__(
        self, claimed: Claimed, token: UUID, asked: float, lease: timedelta, lane: Lease | None = None
    ) -> None:
        self.claimed, self.token, self.lane = claimed, token, lane
        self._deadline = deadline(asked, lease)
        good_for = claimed.good_for
        self._good_until = None if good_for is None else asked + good_for.total_seconds()
        self.started = 0.0

    @property
    def id(self) -> int:
        return self.claimed.id

    @property
    def reference(self) -> tuple[int, UUID]:
        return self.claimed.id, self.token

    def covers(self, seconds: float) -> bool:
        """Whether the claim holds for certain for so long from now; with a lane, the lane must be held as well."""
        return clock() + seconds <= self._deadline and (self.lane is None or not self.lane.lost)

    def is_too_late(self) -> bool:
        """Whether it expired in hand, or the receiver may have forgotten it: the next claim decides."""
        return self._good_until is not None and clock() >= self._good_until

    def lane_lost(self) -> bool:
        return self.lane is not None and self.lane.lost

    def renewed(self, asked: float, lease: timedelta) -> None:
        self._deadline = deadline(asked, lease)
