"""Junction 2: what runs past its timeout is asked to stop, and closed when it does not.

A request is a column and a notice; the holder heeds it at the next junction of the train at the latest. One that does
not heed it within the grace loses its claim: the execution ends here, and whatever its worker says later is refused.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.model.lifecycle import ExecutionState
from interlock.model.outcome import Ending

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from interlock.model.outcome import Ended
    from interlock.store.connection import Connection
    from interlock.store.execution import Executions
    from interlock.store.reaping import Overdue, Overrun, Reaping

GRACE = timedelta(seconds=30)


async def cancel_timed_out_jobs(
    conn: Connection, reaping: Reaping, executions: Executions, *, now: datetime | None
) -> tuple[Sequence[Overrun], Sequence[Ended]]:
    """Answers what was asked to stop, and what was closed because it did not."""
    unheeded = await reaping.unheeded_timeouts(conn, grace=GRACE, now=now)
    ended = await executions.end(conn, [_ending(overdue) for overdue in unheeded], now=now) if unheeded else []
    return await reaping.request_timeouts(conn, now=now), ended


def _ending(overdue: Overdue) -> Ending:
    if overdue.cancel_cause == "person":
        return Ending(overdue.execution_id, overdue.claim_token, ExecutionState.CANCELLED)
    message = f"it ran past its timeout and did not stop within {GRACE.total_seconds():g} s of being asked to"
    return Ending(
        overdue.execution_id,
        overdue.claim_token,
        ExecutionState.FAILED,
        failure="timeout",
        error_type="TimeoutError",
        error_message=message,
    )
