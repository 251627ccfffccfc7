"""What users need to test their own code: time that they can move."""

from __future__ import annotations

from interlock.runtime.clock import FakeClock

__all__ = ["FakeClock"]
