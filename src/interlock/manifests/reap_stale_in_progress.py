"""Junction 4: what is in progress for long and held by no living server fails. A living server beats the clock."""

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


async def reap_stale_in_progress(
    conn: Connection, reaping: Reaping, executions: Executions, *, longest: timedelta, now: datetime | None
) -> Sequence[Ended]:
    message = f"it was in progress for more than {longest}, and no living server holds it"
    return await reap_stale(
        conn, reaping, executions, ExecutionState.IN_PROGRESS, longest=longest, message=message, now=now
    )
