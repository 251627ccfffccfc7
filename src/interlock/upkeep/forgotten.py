"""What a cleaning took away, or would take away."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

IN_BATCHES = ("executions", "entries", "dead_letters", "acts", "orphaned_jobs", "servers")


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Rows by kind, and the executions among them by train."""

    rows: Counter[str] = field(default_factory=Counter)
    trains: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Forgotten) -> Forgotten:
        return Forgotten(self.rows + other.rows, self.trains + other.trains)

    def __bool__(self) -> bool:
        return any(self.rows.values())

    def fills(self, limit: int) -> bool:
        """Whether a kind reached its limit, so that there may be more of it."""
        return any(self.rows[kind] >= limit for kind in IN_BATCHES)
