"""What may serve as a name: of a train, an alias, a group, a tag."""

from __future__ import annotations

from typing import Protocol

from interlock.errors import InvalidOption

LONGEST = 200


class Named(Protocol):
    """Anything declared under a name, such as a manifest group."""

    @property
    def name(self) -> str: ...


def checked_name(option: str, found: object) -> str:
    """The name itself, or an error: names are read in terminals and addresses, so nothing invisible is allowed."""
    if not isinstance(found, str) or not 0 < len(found) <= LONGEST or not found.isprintable() or found != found.strip():
        expected = f"a text of 1 to {LONGEST} printable characters without a space at either end"
        raise InvalidOption(option=option, found=found, expected=expected)
    return found


def checked_names(option: str, found: object) -> tuple[str, ...]:
    """Distinct names, in the order given."""
    if isinstance(found, str) or not isinstance(found, (tuple, list, set, frozenset)):
        raise InvalidOption(option=option, found=found, expected="a list of names, such as ['first', 'second']")
    names = tuple(checked_name(option, name) for name in found)
    if len(set(names)) != len(names):
        raise InvalidOption(option=option, found=found, expected="each name once")
    return names


def name_of(option: str, found: str | Named) -> str:
    """The name of a declared thing, or the name that was written out."""
    return checked_name(option, found if isinstance(found, str) else getattr(found, "name", found))
