from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxSettings:
    """How messages are drained."""

    outbox_enabled: bool = True
    outbox_topics: tuple[str, ...] = ()
    outbox_partitions: tuple[str, ...] = ()
    outbox_mode: Literal["claim", "ordered", "single"] = "claim"
    outbox_lanes: int = 16
    outbox_batch_size: int = 100
    outbox_polling_interval: timedelta = timedelta(seconds=30)
    outbox_lease: timedelta = timedelta(seconds=30)
    outbox_emit_timeout: timedelta = timedelta(seconds=10)
    outbox_max_attempts: int = 8
    outbox_max_crashes: int = 3
    outbox_concurrency: int = 16
    outbox_idempotency_window: timedelta | None = None
    outbox_retention: timedelta = timedelta(days=7)
    outbox_expected_workers: int | None = None
