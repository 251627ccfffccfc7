"""What a running train reports at each boundary between junctions."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told before each junction; records it, and raises CancelledByRequest when the work is to stop."""

    async def boundary(self, junction: str, index: int, total: int) -> None: ...


class Unobserved:
    """The progress of a plain call, which nobody follows."""

    async def boundary(self, junction: str, index: int, total: int) -> None:
        """Nothing to record and nobody to cancel."""
