"""How the lock service does, as one server sees it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import timedelta


class HealthState(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    """It answers, but the test lock was not to be had."""
    UNHEALTHY = "unhealthy"
    """It does not answer."""


@dataclass(frozen=True, slots=True)
class Health:
    state: HealthState
    detail: str
    took: timedelta
