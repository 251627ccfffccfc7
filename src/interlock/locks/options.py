"""What may be asked of a lock: checked at the call, before anything is sent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypedDict

from interlock.errors import InvalidOption
from interlock.trains.names import checked_name

if TYPE_CHECKING:
    from interlock.locks.lease import OnLost

MOST_SLOTS = 10_000
SHORTEST_TTL, LONGEST_TTL = timedelta(milliseconds=50), timedelta(days=7)
LONGEST_WAIT = timedelta(days=365)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a caller of `hold` asked for."""

    name: str
    slots: int
    ttl: timedelta
    wait: timedelta = timedelta(0)
    at_least: timedelta = timedelta(0)
    on_lost: OnLost = "cancel"
    warn_after: timedelta | None = None


class HoldKeywords(TypedDict, total=False):
    """The keywords of `hold` and its relatives."""

    ttl: timedelta | None
    wait: timedelta | float
    at_least: timedelta | float
    on_lost: OnLost
    warn_after: timedelta | None


def checked_wish(
    name: str,
    slots: int,
    usual_ttl: timedelta,
    *,
    ttl: object = None,
    wait: timedelta | float = 0,
    at_least: timedelta | float = 0,
    on_lost: OnLost = "cancel",
    warn_after: object = None,
) -> Wish:
    if on_lost not in ("cancel", "mark"):
        raise InvalidOption(option="on_lost", found=on_lost, expected="'cancel' or 'mark'")
    return Wish(
        name=checked_name("name", name),
        slots=checked_slots(slots),
        ttl=checked_ttl(usual_ttl if ttl is None else ttl),
        wait=_duration("wait", wait),
        at_least=_duration("at_least", at_least),
        on_lost=on_lost,
        warn_after=_warning("warn_after", warn_after),
    )


def checked_ttl(found: object) -> timedelta:
    if not isinstance(found, timedelta) or not SHORTEST_TTL <= found <= LONGEST_TTL:
        raise InvalidOption(option="ttl", found=found, expected="a timedelta from 50 ms to 7 days")
    return found


def checked_slots(found: object, option: str = "slots") -> int:
    if not isinstance(found, int) or isinstance(found, bool) or not 1 <= found <= MOST_SLOTS:
        raise InvalidOption(option=option, found=found, expected=f"a whole number from 1 to {MOST_SLOTS:,}")
    return found


def checked_namespace(found: str) -> str:
    """Environments that share a lock service must not share a namespace."""
    return checked_name("lock_namespace", found)


def checked_slot(found: object) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < MOST_SLOTS:
        raise InvalidOption(option="slot", found=found, expected="the number of a slot, from 0 on")
    return found


def _duration(option: str, found: object) -> timedelta:
    if isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found <= LONGEST_WAIT.total_seconds():
        return timedelta(seconds=found)
    if isinstance(found, timedelta) and timedelta(0) <= found <= LONGEST_WAIT:
        return found
    raise InvalidOption(option=option, found=found, expected="seconds or a timedelta, from zero to a year")


def _warning(option: str, found: object) -> timedelta | None:
    if found is None or (isinstance(found, timedelta) and found > timedelta(0)):
        return found
    raise InvalidOption(option=option, found=found, expected="None or a timedelta above zero")
