"""Lock slots in plain records: what is asked for, what is granted or refused, and who holds what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRequest:
    """One try to take a slot of a name; the token is drawn anew for every try."""

    name: str
    slots: int
    ttl: timedelta
    token: UUID
    owner: str
    server: UUID | None = None
    start: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """Who else held a slot of the name at that moment, and for how many slots they take it.

    Whose N that is is only told where it is not ours.
    """

    holders: int = 0
    narrowest: int | None = None
    narrowest_by: str | None = None
    widest: int | None = None
    widest_by: str | None = None

    def disagreeing(self, slots: int) -> tuple[int, str] | None:
        """Another N than ours, and whose it is; a smaller one first, because it binds."""
        if self.narrowest is not None and self.narrowest < slots:
            return self.narrowest, self.narrowest_by or "?"
        if self.widest is not None and self.widest > slots:
            return self.widest, self.widest_by or "?"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A slot is held until `remaining` has passed. `expired` names a former holder that never released it."""

    slot: int
    fence: int
    acquired_at: datetime
    remaining: timedelta
    expired: str | None = None
    peers: Peers = Peers()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Every slot is taken. `free_in` says when the first lease runs out, if nobody renews it."""

    peers: Peers
    free_in: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """What a holder must show to extend its lease."""

    name: str
    slot: int
    token: UUID
    ttl: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A held slot as the lock service knows it."""

    name: str
    slot: int
    owner: str
    slots: int
    fence: int
    ttl: timedelta
    acquired_at: datetime
    age: timedelta
    expires_in: timedelta
    server: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotInTransaction:
    """A slot that is held until the transaction ends, whichever way it does."""

    name: str
    slot: int
    fence: int
