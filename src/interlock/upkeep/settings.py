from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepSettings:
    """How long history is kept, and how gently it goes."""

    execution_retention: timedelta = timedelta(days=30)
    dead_letter_retention: timedelta = timedelta(days=30)
    audit_retention: timedelta | None = timedelta(days=365)
    cleanup_interval: timedelta = timedelta(minutes=1)
    cleanup_batch: int = 1000
