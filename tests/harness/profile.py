"""The test profile: settings under which a lost server is noticed in about two seconds instead of fifteen."""

from __future__ import annotations

from datetime import timedelta

SHORT_LEASES = {
    "lease": timedelta(seconds=1.5),
    "heartbeat": timedelta(seconds=0.4),
    "recovery_interval": timedelta(seconds=0.1),
    "manifest_manager_polling_interval": timedelta(seconds=0.2),
    "job_dispatcher_polling_interval": timedelta(seconds=0.2),
    "worker_polling_interval": timedelta(seconds=0.2),
    "shutdown_timeout": timedelta(seconds=2),
}
"""Arguments for `Interlock(dsn, **SHORT_LEASES)`."""
