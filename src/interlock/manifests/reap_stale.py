"""What nobody living has held for too long fails, so that it can be tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.model.lifecycle import ExecutionState
from interlock.model.outcome import Ending

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from interlock.model.outcome import Ended
    from interlock.store.connection import Connection
    from interlock.store.execution import Executions
    from interlock.store.reaping import Reaping


async def reap_stale(
    conn: Connection,
    reaping: Reaping,
    executions: Executions,
    state: ExecutionState,
    *,
    longest: timedelta,
    message: str,
    now: datetime | None,
) -> Sequence[Ended]:
    stale = await reaping.stale(conn, state, longer_than=longest, now=now)
    endings = [
        Ending(id_, token, ExecutionState.FAILED, failure=f"stale_{state.value}", error_message=message)
        for id_, token, _ in stale
    ]
    return await executions.end(conn, endings, now=now) if endings else []
