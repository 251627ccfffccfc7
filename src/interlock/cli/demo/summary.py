"""What the demo can prove at its end: numbers from the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORDS = {
    "queued": "work queue entries written",
    "completed": "executions completed",
    "retried": "attempts after a failure",
    "dead_lettered": "left to a person, out of attempts",
    "recovered": "taken over from the killed server",
    "recovered_within": "from its last heartbeat to their next run",
    "pickup_median": "from queued to running, half of them within",
    "pickup_p95": "and 95 of 100 within",
    "timer_runs": "runs of the timer, two at a time in the fleet",
    "messages_delivered": "outbox messages delivered",
    "servers": "servers registered",
    "servers_lost": "of them lost",
}


@dataclass(frozen=True, slots=True)
class DemoSummary:
    totals: Mapping[str, Any]

    def record(self) -> dict[str, Any]:
        """For programs: counts, and durations in seconds."""
        return {name: _seconds(self.totals.get(name)) for name in _WORDS}

    def text(self) -> str:
        """For people."""
        lines = [f"  {_shown(self.totals.get(name)):>8}  {words}" for name, words in _WORDS.items()]
        return "\n".join(["", "summary, from the database:", *lines])


def _seconds(value: Any) -> Any:
    return round(value.total_seconds(), 4) if isinstance(value, timedelta) else value


def _shown(value: Any) -> str:
    if not isinstance(value, timedelta):
        return "-" if value is None else str(value)
    seconds = value.total_seconds()
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
