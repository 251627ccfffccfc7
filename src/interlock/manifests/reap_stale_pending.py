"""Junction 3: what was handed over and never taken up fails, so that it can be tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.manifests.reap_stale import reap_stale
from interlock.model.lifecycle import ExecutionState

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
    message = f"nobody took it up within {longest}"
    return await reap_stale(
        conn, reaping, executions, ExecutionState.PENDING, longest=longest, message=message, now=now
    )
