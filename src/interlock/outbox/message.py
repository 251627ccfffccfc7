"""What an emitter is given: the message, and the terms of this one delivery."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from interlock.model.message import Claimed

T = TypeVar("T")

_UNREAD: Any = object()


class Message:
    """One message; payload and headers are read when they are asked for."""

    __slots__ = ("_headers", "_load", "_payload", "claimed")

    def __init__(self, claimed: Claimed, load: Callable[[str], Any] = msgspec.json.decode) -> None:
        self.claimed, self._load = claimed, load
        self._payload = self._headers = _UNREAD

    def __repr__(self) -> str:
        return f"<Message {self.message_id} of {self.topic}>"

    @property
    def message_id(self) -> str:
        """The same on every attempt: the key by which a receiver knows a second delivery."""
        return self.claimed.message_id

    @property
    def topic(self) -> str:
        return self.claimed.topic

    @property
    def key(self) -> str | None:
        return self.claimed.key

    @property
    def partition(self) -> str | None:
        return self.claimed.partition

    @property
    def published_at(self) -> datetime:
        return self.claimed.published_at

    @property
    def trace(self) -> str | None:
        """The trace context of whoever published it, as a W3C traceparent."""
        return self.claimed.trace

    @property
    def out_of_order(self) -> bool:
        """Whether later messages of its key may have come before it, which only a redrive brings about."""
        return self.claimed.out_of_order

    @property
    def payload(self) -> Any:
        if self._payload is _UNREAD:
            self._payload = self._load(self.claimed.payload)
        return self._payload

    @property
    def headers(self) -> dict[str, str]:
        if self._headers is _UNREAD:
            self._headers = msgspec.json.decode(self.claimed.headers)
        return self._headers  # type: ignore[no-any-return]

    def body(self) -> bytes:
        """The payload as JSON, as it was stored."""
        return self.claimed.payload.encode()


class EmitContext:
    """The terms of one delivery; `redelivery` is true from the second claim on."""

    __slots__ = ("attempt", "deadline", "idempotency_key", "redelivery")

    def __init__(self, claimed: Claimed, seconds: float) -> None:
        self.idempotency_key = claimed.message_id
        self.redelivery = claimed.claims > 1
        self.attempt = claimed.attempts + 1
        self.deadline = time.monotonic() + seconds

    def remaining(self) -> timedelta:
        """How long the delivery may still take."""
        return timedelta(seconds=max(self.deadline - time.monotonic(), 0))
