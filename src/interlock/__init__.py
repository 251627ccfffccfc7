"""Scheduled and background work on many servers that share one PostgreSQL."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlock.app import Interlock
    from interlock.errors import AlreadyResolved, InterlockError, LeaseLost, LockServiceUnavailable, LockTaken
    from interlock.locks.lease import Lease
    from interlock.model.act import Actor
    from interlock.model.exclusion import exclude
    from interlock.model.message import Dead, Delivered
    from interlock.model.outcome import Cancel, Retry, Snooze
    from interlock.model.schedule import cron, every, once
    from interlock.outbox.publish import Draft
    from interlock.trains.finished import FinishedRun
    from interlock.trains.options import Backoff
    from interlock.worker.current import current_execution
    from interlock.worker.extensions import CallNext
    from interlock.worker.resource import Resource

_EXPORTS = {
    "Actor": "interlock.model.act",
    "AlreadyResolved": "interlock.errors",
    "Backoff": "interlock.trains.options",
    "CallNext": "interlock.worker.extensions",
    "Cancel": "interlock.model.outcome",
    "Dead": "interlock.model.message",
    "Delivered": "interlock.model.message",
    "Draft": "interlock.outbox.publish",
    "FinishedRun": "interlock.trains.finished",
    "Interlock": "interlock.app",
    "InterlockError": "interlock.errors",
    "Lease": "interlock.locks.lease",
    "LeaseLost": "interlock.errors",
    "LockServiceUnavailable": "interlock.errors",
    "LockTaken": "interlock.errors",
    "Resource": "interlock.worker.resource",
    "Retry": "interlock.model.outcome",
    "Snooze": "interlock.model.outcome",
    "cron": "interlock.model.schedule",
    "current_execution": "interlock.worker.current",
    "every": "interlock.model.schedule",
    "exclude": "interlock.model.exclusion",
    "once": "interlock.model.schedule",
}

__all__ = [
    "Actor",
    "AlreadyResolved",
    "Backoff",
    "CallNext",
    "Cancel",
    "Dead",
    "Delivered",
    "Draft",
    "FinishedRun",
    "Interlock",
    "InterlockError",
    "Lease",
    "LeaseLost",
    "LockServiceUnavailable",
    "LockTaken",
    "Resource",
    "Retry",
    "Snooze",
    "cron",
    "current_execution",
    "every",
    "exclude",
    "once",
]


def __getattr__(name: str) -> Any:
    """Load what is asked for, and no more: the driver and the CLI's libraries cost time that an import should not."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'interlock' has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
