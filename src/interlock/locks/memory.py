"""Lock slots in the memory of one process: for a single server, and for tests that own the clock."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from interlock.model.lease import Grant, Holder, Peers, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from uuid import UUID

    from interlock.model.lease import Held, SlotRequest

_FEW = 1000  # names, below which nobody looks for what may be forgotten
_NAMED_FOR = timedelta(days=1).total_seconds()  # so long a holder that vanished can still be named to its successor


@dataclass
class _Slot:
    """A slot that was taken; `until` may lie after its release."""

    request: SlotRequest
    fence: int
    ttl: timedelta
    began: float
    until: float
    acquired_at: datetime
    released: bool = False


class MemoryLocks:
    where = "the memory of this process"

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._names: defaultdict[str, dict[int, _Slot]] = defaultdict(dict)
        self._many = _FEW
        self._fence = 0

    async def acquire(self, request: SlotRequest) -> Grant | Refusal:
        with self._guard:
            if len(self._names) >= self._many:
                self._forget()
            taken = self._names[request.name]
            held = {number: slot for number, slot in taken.items() if slot.until > self._clock()}
            bound = min([request.slots, *(slot.request.slots for slot in held.values())])
            order = ((request.start + step) % request.slots for step in range(request.slots))
            free = next((number for number in order if number < bound and number not in held), None)
            if free is None or len(held) >= bound:
                soonest = min((slot.until for slot in held.values()), default=None)
                return Refusal(peers=_peers(held), free_in=None if soonest is None else self._until(soonest))
            former, taken[free] = taken.get(free), self._take(request)
            expired = former.request.owner if former and not former.released else None
            fence, acquired_at = taken[free].fence, taken[free].acquired_at
            return Grant(
                slot=free,
                fence=fence,
                acquired_at=acquired_at,
                remaining=request.ttl,
                expired=expired,
                peers=_peers(held),
            )

    async def extend(self, held: Sequence[Held]) -> dict[UUID, timedelta]:
        with self._guard:
            return {each.token: each.ttl for each in held if self._extended(each)}

    async def release(self, name: str, token: UUID, at_least: timedelta) -> bool:
        with self._guard:
            for slot in self._names[name].values():
                if slot.request.token == token and self._is_held(slot):
                    slot.until = max(self._clock(), slot.began + at_least.total_seconds())
                    slot.released = True
                    return True
            return False

    async def holders(self, name: str | None = None) -> list[Holder]:
        with self._guard:
            return sorted(self._holders(name), key=lambda holder: (holder.name, holder.slot))

    async def force_release(self, name: str, slot: int) -> Holder | None:
        with self._guard:
            found = next((holder for holder in self._holders(name) if holder.slot == slot), None)
            if found is not None:
                self._names[name][slot].until, self._names[name][slot].released = self._clock(), True
            return found

    def server_of(self, name: str) -> str:  # noqa: ARG002  it is the same for all
        return self.where

    async def line(self) -> MemoryLocks:
        return self

    async def close(self) -> None:
        """Nothing is open."""

    def _forget(self) -> None:
        """Names that nobody holds, or a lock per order would fill the memory; once there are twice as many as last."""
        for name in [name for name, slots in self._names.items() if all(map(self._is_over, slots.values()))]:
            del self._names[name]
        self._many = max(_FEW, 2 * len(self._names))

    def _is_over(self, slot: _Slot) -> bool:
        return slot.until + (0 if slot.released else _NAMED_FOR) <= self._clock()

    def _take(self, request: SlotRequest) -> _Slot:
        self._fence += 1
        now, length = self._clock(), request.ttl.total_seconds()
        return _Slot(request, self._fence, request.ttl, now, now + length, datetime.now(UTC))

    def _extended(self, held: Held) -> bool:
        slot = self._names[held.name].get(held.slot)
        if slot is None or slot.request.token != held.token or not self._is_held(slot):
            return False
        slot.ttl, slot.until = held.ttl, max(slot.until, self._clock() + held.ttl.total_seconds())
        return True

    def _is_held(self, slot: _Slot) -> bool:
        return not slot.released and slot.until > self._clock()

    def _until(self, moment: float) -> timedelta:
        return timedelta(seconds=moment - self._clock())

    def _holders(self, name: str | None) -> Iterator[Holder]:
        for known, slots in self._names.items():
            for number, slot in slots.items():
                if name in (None, known) and slot.until > self._clock():
                    yield self._holder(number, slot)

    def _holder(self, number: int, slot: _Slot) -> Holder:
        return Holder(
            name=slot.request.name,
            slot=number,
            owner=slot.request.owner,
            slots=slot.request.slots,
            fence=slot.fence,
            ttl=slot.ttl,
            acquired_at=slot.acquired_at,
            age=timedelta(seconds=self._clock() - slot.began),
            expires_in=self._until(slot.until),
            server=slot.request.server,
        )


def _peers(held: dict[int, _Slot]) -> Peers:
    if not held:
        return Peers()
    requests = sorted((slot.request for slot in held.values()), key=lambda request: request.slots)
    return Peers(
        holders=len(held),
        narrowest=requests[0].slots,
        narrowest_by=requests[0].owner,
        widest=requests[-1].slots,
        widest_by=requests[-1].owner,
    )
