from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How many jobs a worker runs, and how it ends them."""

    worker_polling_interval: timedelta = timedelta(seconds=1)
    worker_slots: int = 50
    worker_tags: tuple[str, ...] = ()
    max_crashes: int = 3
    max_output_bytes: int = 1024 * 1024
    settle_window: timedelta = timedelta(milliseconds=5)
    runner_secret: str | None = field(default=None, repr=False)
