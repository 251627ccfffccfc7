"""The clock that stands still until a test moves it."""

from __future__ import annotations

from interlock.runtime.clock import FakeClock

__all__ = ["FakeClock"]
