"""What may be published: checked at the call, and put into the words of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from interlock.errors import InvalidOption, PayloadTooLarge
from interlock.model.message import NewMessage
from interlock.observe.trace import traceparent
from interlock.trains.names import checked_name
from interlock.trains.options import checked_duration
from interlock.trains.storable import Unstorable, encode, to_builtins

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

LONGEST_ID = 200


class Draft(NamedTuple):
    """A message of `publish_many`."""

    topic: str
    payload: Any = None
    key: str | None = None
    partition: str | None = None
    message_id: str | None = None
    headers: Mapping[str, str] | None = None
    delay: timedelta | None = None
    expires: timedelta | None = None


def checked_message(draft: Draft, *, max_bytes: int) -> NewMessage:
    """The message as it is stored; raises what is wrong with it, and nothing is written then."""
    topic = checked_name("topic", draft.topic)
    if "*" in topic:
        raise InvalidOption(option="topic", found=topic, expected="a topic, not a pattern")
    payload = _json("payload", draft.payload)
    if len(payload) > max_bytes:
        raise PayloadTooLarge(what=f"the payload for {topic!r}", size=len(payload), limit=max_bytes)
    headers = draft.headers or {}
    return NewMessage(
        topic=topic,
        payload=payload.decode(),
        headers=_json("headers", _checked_headers(headers)).decode(),
        key=_checked_text("key", draft.key),
        partition=_checked_text("partition", draft.partition),
        message_id=_checked_text("message_id", draft.message_id),
        delay=None if draft.delay is None else checked_duration("delay", draft.delay, zero=True),
        expires=None if draft.expires is None else checked_duration("expires", draft.expires),
        trace=headers.get("traceparent") or traceparent(),
    )


def _json(what: str, value: Any) -> bytes:
    try:
        return encode(to_builtins(value))
    except (TypeError, ValueError, Unstorable, msgspec.MsgspecError) as error:
        raise InvalidOption(
            option=what, found=type(value).__name__, expected=f"what JSON can hold ({error})"
        ) from error


def _checked_headers(headers: Mapping[Any, Any]) -> dict[str, str]:
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidOption(option="headers", found={name: value}, expected="texts by text")
    return dict(headers)


def _checked_text(option: str, found: object) -> str | None:
    if found is None:
        return None
    if not isinstance(found, str) or not 0 < len(found) <= LONGEST_ID or "\0" in found:
        raise InvalidOption(option=option, found=found, expected=f"a text of 1 to {LONGEST_ID} characters")
    return found
