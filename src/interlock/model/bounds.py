"""How long and how large something may be that somebody says, checked where it is said."""

from __future__ import annotations

from datetime import timedelta

from interlock.errors import InvalidOption

LONGEST = timedelta(days=36_500)
"""Beyond a century or so dates leave what PostgreSQL and Python can both hold."""
LARGEST_COUNT = 2**31 - 1
LARGEST_ID = 2**63 - 1


def checked_id(option: str, found: object) -> int:
    """The number of a row; neither a text nor a fraction, which a driver would cut off without a word."""
    if isinstance(found, bool) or not isinstance(found, int) or abs(found) > LARGEST_ID:
        raise InvalidOption(option=option, found=found, expected="its number, such as 42")
    return found


def checked_limit(found: object) -> int:
    """How many rows are wanted at most."""
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= LARGEST_COUNT:
        raise InvalidOption(option="limit", found=found, expected="a whole number from 1 on")
    return found


def checked_remark(option: str, found: object) -> str:
    """What somebody says of themselves or of a deed, as the audit keeps it."""
    if not isinstance(found, str) or "\0" in found or not _is_unicode(found):
        raise InvalidOption(option=option, found=found, expected="a text without NUL")
    return found


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)
