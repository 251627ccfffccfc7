"""What a server delivers, as its tags in the registry say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from interlock.outbox.doctor import TAG
from interlock.outbox.emitter import expression_of

if TYPE_CHECKING:
    from collections.abc import Sequence

EMITS = "emits:"


def emits(tags: Sequence[str], topic: str) -> bool:
    """Whether a server with these tags has an emitter for the topic; older code does not tell, and may."""
    patterns = [tag.removeprefix(EMITS) for tag in tags if tag.startswith(EMITS)]
    return not patterns or any(re.match(expression_of(pattern), topic, re.DOTALL) for pattern in patterns)


def delivers(tags: Sequence[str], partition: str | None) -> bool:
    """Whether a server with these tags delivers the partition; one that names none delivers all."""
    partitions = [tag.removeprefix(TAG) for tag in tags if tag.startswith(TAG)]
    return not partitions or partition in partitions
