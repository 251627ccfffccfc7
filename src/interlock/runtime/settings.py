from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeSettings:
    """Who this server is and how long it is believed to live."""

    name: str | None = None
    server_name: str | None = None
    lease: timedelta = timedelta(seconds=10)
    heartbeat: timedelta = timedelta(seconds=3)
    recovery_interval: timedelta = timedelta(seconds=1)
    shutdown_timeout: timedelta = timedelta(seconds=30)
