"""What can happen to a lock and to a lease."""

from __future__ import annotations

from typing import ClassVar

from interlock.errors.base import InterlockError


class LockServiceUnavailable(InterlockError):
    where: str
    reason: str

    def __str__(self) -> str:
        return f"no answer from the lock service at {self.where}: {self.reason}; nothing was taken"


class LockTaken(InterlockError):
    """Every slot is taken, and stayed so for as long as the caller would wait."""

    exit_code: ClassVar[int] = 6
    name: str
    slots: int
    waited: float = 0.0

    def __str__(self) -> str:
        what = "the slot" if self.slots == 1 else f"each of the {self.slots} slots"
        waited = f" after {self.waited:.3g} s" if self.waited else ""
        return f"{what} of lock {self.name!r} is taken{waited}; wait longer, or see: interlock locks list"


class LeaseLost(InterlockError):
    """Another owner may hold it by now: stop."""

    name: str
    slot: int | None = None
    fence: int | None = None

    def __str__(self) -> str:
        slot = "" if self.slot is None else f" slot {self.slot}"
        fence = "" if self.fence is None else f" (fence {self.fence})"
        return f"the lease on {self.name!r}{slot}{fence} is lost; another owner may hold it by now"
