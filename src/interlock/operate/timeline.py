"""Where the time of an attempt went: waiting in the queue, waiting for a worker, running."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from interlock.model.reading import ExecutionDetail


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happened, and how long the attempt had waited or run until then."""

    what: str
    at: datetime
    after: timedelta | None


def timeline(execution: ExecutionDetail) -> list[Step]:
    """What happened so far, in order. A wait that was asked for (a delay) is a step of its own.

    When the entry is gone, an hour after the dispatch, nobody knows any more how long it waited in the queue.
    """
    line = execution.line
    moments = [
        ("queued", execution.queued_at),
        ("ready", execution.scheduled_at if _was_delayed(execution) else None),
        ("dispatched", line.created_at),
        ("started", line.started_at),
        ("cancel requested", execution.cancel_requested_at),
        (line.state, line.ended_at),
    ]
    steps: list[Step] = []
    for what, at in moments:
        if at is not None:
            steps.append(Step(what, at, at - steps[-1].at if steps else None))
    return steps


def _was_delayed(execution: ExecutionDetail) -> bool:
    queued, scheduled = execution.queued_at, execution.scheduled_at
    return queued is not None and scheduled is not None and scheduled > queued
