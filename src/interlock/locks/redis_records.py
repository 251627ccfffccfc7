"""What the scripts in Redis are asked and what they answer, as records."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from interlock.model.lease import Grant, Holder, Peers, Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.model.lease import SlotRequest

_REFUSED = 6  # fields of an answer that grants nothing


def question_of(request: SlotRequest) -> str:
    server, owner = "" if request.server is None else request.server.hex, request.owner.replace("\0", "")
    return f"{request.slots} {request.start} {milliseconds(request.ttl)} {request.token.hex} {server} {owner}"


def read_answer(found: Sequence[bytes], ttl: timedelta) -> Grant | Refusal:
    peers = _peers(found) if found[0] != b"0" else Peers()
    if len(found) == _REFUSED:
        soonest = int(found[5])
        return Refusal(peers=peers, free_in=timedelta(milliseconds=soonest) if soonest >= 0 else None)
    slot, fence, seconds, micros, expired = found[_REFUSED:]
    return Grant(
        slot=int(slot),
        fence=int(fence),
        acquired_at=_moment(seconds, micros),
        remaining=ttl,
        expired=expired.decode() or None,
        peers=peers,
    )


def _peers(found: Sequence[bytes]) -> Peers:
    holders, narrowest, narrowest_by, widest, widest_by = found[:5]
    return Peers(
        holders=int(holders),
        narrowest=int(narrowest),
        narrowest_by=narrowest_by.decode(),
        widest=int(widest),
        widest_by=widest_by.decode(),
    )


def _moment(seconds: bytes | str, micros: bytes | str) -> datetime:
    return datetime.fromtimestamp(int(seconds), UTC).replace(microsecond=int(micros))


def read_holder(name: str, slot: int, found: Sequence[Any]) -> Holder:
    *fields, left, now = found
    owner, server, slots, fence, ttl, acquired = (field.decode() for field in fields)
    acquired_at, server_now = _moment(*acquired.split(".")), _moment(*now)
    return Holder(
        name=name,
        slot=slot,
        owner=owner,
        slots=int(slots),
        fence=int(fence),
        ttl=timedelta(milliseconds=int(ttl)),
        acquired_at=acquired_at,
        age=server_now - acquired_at,
        expires_in=timedelta(milliseconds=max(left, 0)),
        server=UUID(server) if server else None,
    )


def milliseconds(duration: timedelta) -> int:
    return max(round(duration.total_seconds() * 1000), 0)
