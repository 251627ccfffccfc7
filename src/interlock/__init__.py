"""Scheduled and background work on many servers that share one PostgreSQL."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlock.app import Interlock
    from interlock.errors import InterlockError, LeaseLost

_EXPORTS = {
    "Interlock": "interlock.app",
    "InterlockError": "interlock.errors",
    "LeaseLost": "interlock.errors",
}

__all__ = ["Interlock", "InterlockError", "LeaseLost"]


def __getattr__(name: str) -> Any:
    """Load what is asked for, and no more: the driver and the CLI's libraries cost time that an import should not."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'interlock' has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
