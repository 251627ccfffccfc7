"""What may be asked of a lock: checked at the call, before anything is sent."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.errors import InvalidOption
from interlock.locks.acquire import Wish
from interlock.trains.names import checked_name

if TYPE_CHECKING:
    from interlock.locks.lease import OnLost

MOST_SLOTS = 10_000
SHORTEST_TTL = timedelta(milliseconds=50)


def checked_wish(
    name: str,
    slots: int,
    ttl: object,
    *,
    wait: timedelta | float,
    at_least: timedelta | float,
    on_lost: OnLost,
    warn_after: timedelta | None,
) -> Wish:
    if on_lost not in ("cancel", "mark"):
        raise InvalidOption(option="on_lost", found=on_lost, expected="'cancel' or 'mark'")
    if not isinstance(ttl, timedelta) or ttl < SHORTEST_TTL:
        raise InvalidOption(option="ttl", found=ttl, expected="a timedelta of at least 50 ms")
    return Wish(
        name=checked_name("name", name),
        slots=checked_slots(slots),
        ttl=ttl,
        wait=_duration("wait", wait),
        at_least=_duration("at_least", at_least),
        on_lost=on_lost,
        warn_after=warn_after,
    )


def checked_slots(found: object) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or not 1 <= found <= MOST_SLOTS:
        raise InvalidOption(option="slots", found=found, expected=f"a whole number from 1 to {MOST_SLOTS:,}")
    return found


def checked_namespace(found: str) -> str:
    """Environments that share a lock service must not share a namespace."""
    return checked_name("lock_namespace", found)


def _duration(option: str, found: timedelta | float) -> timedelta:
    duration = found if isinstance(found, timedelta) else timedelta(seconds=found)
    if duration < timedelta(0):
        raise InvalidOption(option=option, found=found, expected="zero or more")
    return duration
