"""Entries that go straight to the worker of this server: executions that are held from the moment they exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from interlock.model.execution import Claim
from interlock.model.work import Dispatched

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from interlock.model.execution import Reservation
    from interlock.model.work import Candidate
    from interlock.store.connection import Connection, Record
    from interlock.store.sql import Catalog

OVERLAP = 4
"""So many times its room a dispatcher looks at after it lost entries to another."""
CLAIM = slice(len(Claim._fields))


class Taken(NamedTuple):
    """What the worker holds now, and the same as the entries it was."""

    claims: list[Claim]
    dispatched: list[Dispatched]


class Attempt(NamedTuple):
    """What one statement took. It takes nothing where caps are to be counted, entries to be made ready (`due`), or the
    server is not alive. `waiting` jobs are to be claimed first; `lost` were held by other dispatchers.
    """

    taken: Taken
    alive: bool
    capped: bool
    due: bool
    waiting: int
    lost: int


class Taking:
    def __init__(self, sql: Catalog) -> None:
        self._direct, self._take = sql["dispatch/direct"], sql["dispatch/take"]
        self._overlap = 1
        self._sequence = f'"{sql.schema}".execution_id_seq'

    async def attempt(
        self, conn: Connection, trains: Collection[str], reservation: Reservation, *, now: datetime | None
    ) -> Attempt:
        """A whole dispatch in one round trip, as far as it can be done in one."""
        rows = await self._direct.fetch(
            conn,
            trains=list(trains),
            room=reservation.room,
            looks=reservation.room * self._overlap,
            server=reservation.server,
            host=reservation.host,
            token=reservation.token,
            sequence=self._sequence,
            now=now,
        )
        *_, alive, capped, due, waiting, found = rows[0]
        taken = _taken(row for row in rows if row[0] is not None)
        lost = max(min(found, reservation.room - waiting) - len(taken.claims), 0)
        self._overlap = OVERLAP if lost else 1
        return Attempt(taken, alive, capped, due, waiting, lost)

    async def take(
        self, conn: Connection, chosen: Sequence[Candidate], reservation: Reservation, *, now: datetime | None
    ) -> Taken:
        """Turn locked entries into executions that the worker of this server holds."""
        rows = await self._take.fetch(
            conn,
            ids=[candidate.id for candidate in chosen],
            server=reservation.server,
            host=reservation.host,
            token=reservation.token,
            sequence=self._sequence,
            now=now,
        )
        return _taken(rows)


def _taken(rows: Iterable[Record]) -> Taken:
    claims, dispatched = [], []
    for row in rows:
        claim = Claim._make(row[CLAIM])
        claims.append(claim)
        dispatched.append(Dispatched(row["entry_id"], claim.execution_id, claim.train, claim.attempt, claim.manifest))
    return Taken(claims, dispatched)
