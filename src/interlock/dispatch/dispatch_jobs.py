"""Junction 4: entries become executions, all in one statement.

If PostgreSQL refuses the statement for the sake of one entry, the tick is rolled back and done again `one_by_one`: each
entry under a savepoint of its own, so the one that cannot be dispatched fails alone, with its reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from interlock.store.execution import Executions
from interlock.store.fault import is_passing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from interlock.model.work import Candidate, Dispatched
    from interlock.store.connection import Connection
    from interlock.store.dispatching import Dispatching, Refused
    from interlock.store.sql import Catalog


class Unfit(NamedTuple):
    """An entry that could not be dispatched, and what PostgreSQL said."""

    entry_id: int
    refused: Refused
    error: Exception


async def dispatch_jobs(
    conn: Connection, dispatching: Dispatching, chosen: Sequence[Candidate], *, now: datetime | None
) -> list[Dispatched]:
    return await dispatching.hand_over(conn, chosen, now=now) if chosen else []


async def dispatch_one_by_one(
    conn: Connection, dispatching: Dispatching, sql: Catalog, chosen: Sequence[Candidate], *, now: datetime | None
) -> tuple[list[Dispatched], list[Unfit]]:
    done: list[Dispatched] = []
    unfit: list[Unfit] = []
    for candidate in chosen:
        try:
            async with conn.transaction():
                done += await dispatching.hand_over(conn, [candidate], now=now)
        except Exception as error:
            if is_passing(error):
                raise
            unfit += await _fail_alone(conn, dispatching, candidate, error, now)
    manifests = {each.refused.manifest_id for each in unfit if each.refused.manifest_id is not None}
    if manifests:
        await Executions(sql).unblock(conn, manifests, now=now)
    return done, unfit


async def _fail_alone(
    conn: Connection, dispatching: Dispatching, candidate: Candidate, error: Exception, now: datetime | None
) -> list[Unfit]:
    refused = await dispatching.fail_if_queued(conn, candidate.id, f"{type(error).__name__}: {error}", now=now)
    return [] if refused is None else [Unfit(candidate.id, refused, error)]
