"""Junction 3: what was handed over and never taken up fails, so that it can be tried again."""

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


async def reap_stale_pending(
    conn: Connection, reaping: Reaping, executions: Executions, *, longest: timedelta, now: datetime | None
) -> Sequence[Ended]:
    stale = await reaping.stale_pending(conn, longer_than=longest, now=now)
    message = f"nobody took it up within {longest}"
    endings = [
        Ending(id_, token, ExecutionState.FAILED, failure="stale_pending", error_message=message)
        for id_, token, _ in stale
    ]
    return await executions.end(conn, endings, now=now) if endings else []
