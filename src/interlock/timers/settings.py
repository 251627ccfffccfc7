from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerSettings:
    """Whether timers count across the fleet, or in this process alone."""

    timers_distributed: bool = True
