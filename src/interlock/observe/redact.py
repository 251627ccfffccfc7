"""Passwords never leave the process in an event or a log line."""

from __future__ import annotations

import functools
import re
from typing import Any

DEEPEST = 8  # levels of lists and tables in a value: one may hold itself


def without_password(text: str) -> str:
    """The text with the password of every connection string in it replaced by three stars."""
    if "://" not in text and "password" not in text:
        return text
    in_address, in_pair = _patterns()
    return in_pair.sub(r"\1***", in_address.sub(r"\1:***@", text))


def redacted(value: Any, depth: int = DEEPEST) -> Any:
    """The value with the passwords removed from every text in it; what lies too deep or cannot be read becomes text."""
    try:
        match value:
            case str():
                return without_password(value)
            case dict() | list() | tuple() if depth == 0:
                return without_password(str(value))
            case dict():
                return {key: redacted(member, depth - 1) for key, member in value.items()}
            case list() | tuple():
                return [redacted(member, depth - 1) for member in value]
            case _:
                return value
    except Exception:  # noqa: BLE001  any object may be attached to a record, and may raise when it is looked at
        return f"<unprintable {type(value).__name__}>"


@functools.cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    # Greedy to the last @: a password that was not percent-encoded may itself hold one.
    return re.compile(r"(://[^:@/\s]*):\S*@"), re.compile(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&'\"]+)")
