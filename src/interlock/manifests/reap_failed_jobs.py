"""Junction 5: a manifest whose attempts are used up gets the dead letter that it lacks.

The end of a run writes it in its own transaction. What comes here is what could not: attempts that were lowered since,
rows that an older version or a person left behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from interlock.model.due import DueManifest
    from interlock.store.connection import Connection
    from interlock.store.reaping import Exhausted, Reaping


async def reap_failed_jobs(
    conn: Connection,
    reaping: Reaping,
    due: Sequence[DueManifest],
    *,
    max_attempts: Callable[[DueManifest], int | None],
    now: datetime | None,
) -> Sequence[Exhausted]:
    failed = [(each.id, each.failed_count, max_attempts(each)) for each in due if each.failed_count]
    return await reaping.reap_failed(conn, failed, now=now)
