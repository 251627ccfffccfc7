"""What may be published: checked at the call, and put into the words of the table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from interlock.errors import InvalidOption, PayloadTooLarge
from interlock.model.message import NewMessage
from interlock.observe.trace import traceparent
from interlock.trains.names import checked_name
from interlock.trains.options import checked_duration
from interlock.trains.storable import Unstorable, encode, to_builtins

if TYPE_CHECKING:
    from datetime import timedelta

LONGEST_ID = 200
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


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


def checked_topic(found: object) -> str:
    topic = checked_name("topic", found)
    if "*" in topic:
        raise InvalidOption(option="topic", found=topic, expected="a topic, not a pattern")
    return topic


def checked_message(draft: Draft, *, max_bytes: int) -> NewMessage:
    """The message as it is stored; raises what is wrong with it, and nothing is written then."""
    if not isinstance(draft, Draft):
        raise InvalidOption(option="message", found=draft, expected="a Draft, such as Draft('order.paid', {'id': 1})")
    topic = checked_topic(draft.topic)
    payload = _json("payload", draft.payload)
    if len(payload) > max_bytes:
        raise PayloadTooLarge(what=f"the payload for {topic!r}", size=len(payload), limit=max_bytes)
    headers = _checked_headers(draft.headers)
    return NewMessage(
        topic=topic,
        payload=payload.decode(),
        headers=_json("headers", headers).decode(),
        key=checked_text("key", draft.key),
        partition=checked_text("partition", draft.partition),
        message_id=checked_text("message_id", draft.message_id),
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


def _checked_headers(headers: object) -> dict[str, str]:
    if headers is None:
        return {}
    if not isinstance(headers, Mapping):
        raise InvalidOption(option="headers", found=headers, expected="texts by text")
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidOption(option="headers", found={name: value}, expected="texts by text")
    return dict(headers)


def checked_text(option: str, found: object) -> str | None:
    """Any text that PostgreSQL can hold, within limits: it has no place for NUL, nor UTF-8 for lone surrogates."""
    if found is None:
        return None
    if not isinstance(found, str) or not 0 < len(found) <= LONGEST_ID or _UNSTORABLE.search(found):
        raise InvalidOption(option=option, found=found, expected=f"a text of 1 to {LONGEST_ID} characters")
    return found
