"""What a lock service must be able to do; one suite of tests holds all of them to it.

Expiry is decided by the service's own clock, a fence only ever grows per name and slot, and nobody but the holder of
the token extends or releases. What a service cannot answer is a `LockServiceUnavailable`, whatever its client calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta
    from uuid import UUID

    from interlock.model.lease import Grant, Held, Holder, Refusal, SlotRequest


class Line(Protocol):
    """A connection of one's own: the keeper renews on it, so that no traffic of the work stands in its way."""

    async def extend(self, held: Sequence[Held]) -> dict[UUID, timedelta]:
        """How much remains, by token. One that is missing is lost; it is never acquired anew, and none is shortened."""
        ...

    async def release(self, name: str, token: UUID, at_least: timedelta) -> bool: ...

    def server_of(self, name: str) -> str:
        """Which of several servers keeps the slots of the name, as far as is known: those of one fail together."""
        ...

    async def close(self) -> None: ...


class LockBackend(Line, Protocol):
    """Safe to use from any number of event loops."""

    @property
    def where(self) -> str:
        """Where the service is, without a password."""
        ...

    async def acquire(self, request: SlotRequest) -> Grant | Refusal:
        """Take the first free of N slots, from `request.start` on, in one round trip; wait for nobody."""
        ...

    async def holders(self, name: str | None = None) -> list[Holder]: ...

    async def force_release(self, name: str, slot: int) -> Holder | None:
        """Free a slot whoever holds it; answers who did."""
        ...

    async def line(self) -> Line: ...
