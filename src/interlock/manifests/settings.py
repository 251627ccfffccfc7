from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestSettings:
    """How often and how much the manager queues, and what a manifest is when it does not say."""

    manifest_manager_polling_interval: timedelta = timedelta(seconds=5)
    max_work_queue_entries_per_cycle: int | None = 200
    dependent_priority_boost: int = 16
    max_attempts: int = 3
    retry_delay: timedelta = timedelta(minutes=5)
    retry_backoff: float = 2.0
    max_retry_delay: timedelta = timedelta(hours=1)
    default_job_timeout: timedelta = timedelta(minutes=20)
    stale_pending_timeout: timedelta = timedelta(minutes=20)
    stale_in_progress_timeout: timedelta = timedelta(minutes=60)
    misfire: Literal["fire_once", "skip"] = "fire_once"
    misfire_threshold: timedelta = timedelta(seconds=60)
    prune_orphaned_manifests: bool = True
