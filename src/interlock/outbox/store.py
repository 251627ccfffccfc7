"""What a drain needs of the place where messages are kept; one conformance suite holds every implementation to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta
    from uuid import UUID

    from interlock.model.message import Answer, ClaimRequest, Claims, Settlement


class MessageStore(Protocol):
    async def claim(self, request: ClaimRequest) -> Claims:
        """Take what is due and nobody holds; end what must not be delivered any more."""

    async def settle(self, settlements: Sequence[Settlement]) -> list[Answer]:
        """Write how deliveries ended, each only if its claim still holds; answers in order."""

    async def release(self, held: Sequence[tuple[int, UUID]], delay: timedelta) -> set[int]:
        """Give back what was not emitted, as if it had not been claimed; answers what was still held."""

    async def renew(self, held: Sequence[tuple[int, UUID]], lease: timedelta) -> set[int]:
        """Hold on for a whole lease; never claims. Answers what was still held."""

    async def next_due(self, patterns: Sequence[str]) -> timedelta | None:
        """How long until something that is not due yet will be."""

    async def open_breaker(self, topic: str, pause: timedelta, most: timedelta) -> timedelta | None:
        """Let nobody claim the topic until a probe; answers when, or None if somebody else did so already."""

    async def close_breaker(self, topic: str) -> bool:
        """Let the topic be claimed again; False says that it was not closed to anybody."""

    async def tags(self) -> list[Sequence[str]]:
        """What the live servers that deliver say of themselves, one by one."""

    async def close(self) -> None: ...
