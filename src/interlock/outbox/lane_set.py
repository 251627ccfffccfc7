"""Which workers share lanes with each other: those that deliver the same, told by a tag of their server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2s
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from interlock.outbox.emitter import Emitters
    from interlock.outbox.settings import OutboxSettings

TAG = "outbox-lanes:"


@dataclass(frozen=True, slots=True)
class LaneSet:
    """A worker that serves other topics or partitions could not deliver what is in a lane that it holds."""

    name: str
    lanes: int

    @property
    def tag(self) -> str:
        return f"{TAG}{self.name}:{self.lanes}"

    def counts(self, tags: Iterable[Iterable[str]]) -> list[int]:
        """How many lanes the workers of this set count, one by one, from the tags of the live servers."""
        mine = f"{TAG}{self.name}:"
        return [int(tag.removeprefix(mine)) for each in tags for tag in each if tag.startswith(mine)]


def lane_set_of(settings: OutboxSettings, emitters: Emitters) -> LaneSet | None:
    """None in the mode `claim`, which knows no lanes."""
    if settings.outbox_mode == "claim":
        return None
    served = [sorted(settings.outbox_partitions), sorted(settings.outbox_topics), emitters.patterns()]
    name = "outbox:" + blake2s(json.dumps(served).encode(), digest_size=4).hexdigest()
    return LaneSet(name, 1 if settings.outbox_mode == "single" else settings.outbox_lanes)
