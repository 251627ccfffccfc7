"""What a server delivers, as its tags in the registry say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from interlock.outbox.doctor import TAG
from interlock.outbox.emitter import expression_of
from interlock.outbox.lane_set import TAG as LANES

if TYPE_CHECKING:
    from collections.abc import Sequence

EMITS = "emits:"
ONLY = "outbox-topics:"


def emits(tags: Sequence[str], topic: str) -> bool:
    """Whether a server with these tags has an emitter for the topic and was not told to leave it to others."""
    return _covers(tags, EMITS, topic) and _covers(tags, ONLY, topic)


def delivers(tags: Sequence[str], partition: str | None) -> bool:
    """Whether a server with these tags delivers the partition; one that names none delivers all."""
    partitions = [tag.removeprefix(TAG) for tag in tags if tag.startswith(TAG)]
    return not partitions or partition in partitions


def keeps_order(tags: Sequence[str]) -> bool:
    """Whether a server with these tags delivers the messages of a key one after the other."""
    return any(tag.startswith(LANES) for tag in tags)


def _covers(tags: Sequence[str], prefix: str, topic: str) -> bool:
    """Whether one of the patterns fits, or none is named: that is all, or code that does not tell."""
    patterns = [tag.removeprefix(prefix) for tag in tags if tag.startswith(prefix)]
    return not patterns or any(re.match(expression_of(pattern), topic, re.DOTALL) for pattern in patterns)
