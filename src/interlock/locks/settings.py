from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class LockSettings:
    """Where lock slots live."""

    lock_backend: Literal["postgres", "redis", "memory"] = "postgres"
    redis_url: str | None = field(default=None, repr=False)  # it may hold a password
    lock_namespace: str | None = None
    lock_ttl: timedelta = timedelta(seconds=30)
