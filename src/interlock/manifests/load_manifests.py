"""Junction 1: what is due, by group, and without payloads."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from interlock.model.due import DueManifest
    from interlock.store.connection import Connection
    from interlock.store.manifest import Manifests

MOST = 5_000
"""However many a cycle may queue: what one transaction handles has to fit into the limits of a tick."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """`more` says that a group may have further ones due than its share of what one cycle reads."""

    due: Sequence[DueManifest]
    more: bool


async def load_manifests(conn: Connection, manifests: Manifests, *, limit: int | None, now: datetime | None) -> Loaded:
    """Twice as many as can be queued, because some of them will turn out to be blocked or skipped."""
    due, share = await manifests.load(conn, bound=MOST if limit is None else min(2 * limit, MOST), now=now)
    by_group = Counter(manifest.group_id for manifest in due)
    return Loaded(due, more=max(by_group.values(), default=0) >= share)
