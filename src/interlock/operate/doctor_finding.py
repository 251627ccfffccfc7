"""A finding: what looks wrong, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    """Which check found it, in one or two words that programs may rely on."""
    found: str
    advice: str
    command: str | None = None
    """What to type or to run, where one line does it."""
