"""When a timer of an interval fires on one server, so that a fleet does not fire all at once."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import timedelta

_RANGE = 1 << 64


def spread(timer: str, server: str, interval: timedelta) -> timedelta:
    """A part of the interval that depends on both names alone: the same after every restart, another on every server.

    The name of the server counts and not its id, which is drawn anew at each start.
    """
    digest = blake2b(f"{timer}\0{server}".encode(), digest_size=8).digest()
    return interval * (int.from_bytes(digest, "big") / _RANGE)
