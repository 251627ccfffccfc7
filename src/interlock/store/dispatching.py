"""What the dispatcher reads and writes: lanes, locks, counts, candidates, and the one statement that dispatches."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from interlock.model.failure import kind_of, message_of
from interlock.model.work import Candidate, Dispatched, Lane

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog

GLOBAL = "all"
_read_counts = msgspec.json.Decoder(dict[str, int]).decode


class Active(NamedTuple):
    """How many executions of a group are active, and how many of them the global cap counts."""

    active: int
    counted: int


class Survey(NamedTuple):
    """The lanes of enabled groups and running trains, how many jobs of each train wait for a worker already (if that
    was asked for), and whether any group has a cap.
    """

    lanes: list[Lane]
    waiting: dict[str, int] | None
    capped: bool


class Claimed(NamedTuple):
    """An entry that became an execution and is to be submitted elsewhere."""

    entry_id: int
    execution_id: int
    train: str
    input: str
    attempt: int
    submits: int
    manifest: str | None


class Refused(NamedTuple):
    """An entry that could not be dispatched and failed alone."""

    train: str
    first_entry_id: int
    manifest_id: int | None
    kind: str


class Dispatching:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql
        self._sequence = f'"{sql.schema}".execution_id_seq'

    async def make_ready(self, conn: Connection, *, limit: int, now: datetime | None) -> int:
        """Let entries whose time has come take part; answers how many."""
        return len(await self._sql["dispatch/ready"].fetch(conn, limit=limit, now=now))

    async def time_to_next_ready(self, conn: Connection, *, now: datetime | None) -> timedelta | None:
        ahead: timedelta | None = await self._sql["dispatch/next_ready"].fetchval(conn, now=now)
        return ahead

    async def survey(self, conn: Connection, trains: Collection[str], *, count_waiting: bool = False) -> Survey:
        """What could be dispatched of these trains, as far as the switches go."""
        rows = await self._sql["dispatch/lanes"].fetch(conn, trains=list(trains), count_waiting=count_waiting)
        lanes = [Lane(row[0], row[1], row[2], row[3]) for row in rows if row[0] is not None]
        return Survey(lanes, _read_counts(rows[0]["waiting"]) if count_waiting else None, rows[0]["capped"])

    async def lock_if_free(self, conn: Connection, *, all_groups: bool, group_ids: Collection[int]) -> set[int | None]:
        """Take the locks of capped capacity, the global one (None) first, then groups by id; answers those taken."""
        scopes: list[int | None] = [*([None] if all_groups else []), *sorted(group_ids)]
        names = [GLOBAL if scope is None else str(scope) for scope in scopes]
        rows = await self._sql["dispatch/lock"].fetch(conn, schema=self._sql.schema, scopes=names)
        return {scope for scope, row in zip(scopes, rows, strict=True) if row["locked"]}

    async def count_active(self, conn: Connection, *, excluded: Collection[str]) -> dict[int, Active]:
        """Active executions by group. Call it after `lock_if_free`, never in one statement with it."""
        rows = await self._sql["dispatch/count_active"].fetch(conn, excluded=list(excluded))
        return {row["group_id"]: Active(row["active"], row["counted"]) for row in rows}

    async def lock_candidates(
        self, conn: Connection, takes: Mapping[Lane, int], *, limit: int, chosen: Sequence[Candidate]
    ) -> tuple[list[Candidate], int]:
        """The first entries of these lanes that are not chosen yet, merged in the order of dispatch; beside them how
        many were lost to others who hold them.
        """
        lanes = list(takes)
        rows = await self._sql["dispatch/load"].fetch(
            conn,
            group_ids=[lane.group_id for lane in lanes],
            trains=[lane.train for lane in lanes],
            group_priorities=[lane.group_priority for lane in lanes],
            limits=list(takes.values()),
            limit=limit,
            chosen=[candidate.id for candidate in chosen],
        )
        candidates = [Candidate(row[0], row[1], row[2], row[3]) for row in rows if row[0] is not None]
        return candidates, max(min(rows[0]["found"], limit) - len(candidates), 0)

    async def hand_over(
        self, conn: Connection, chosen: Sequence[Candidate], *, now: datetime | None
    ) -> list[Dispatched]:
        """Turn locked entries into executions that any worker may claim."""
        rows = await self._sql["dispatch/hand_over"].fetch(
            conn,
            ids=[candidate.id for candidate in chosen],
            group_priorities=[candidate.group_priority for candidate in chosen],
            sequence=self._sequence,
            now=now,
        )
        return [Dispatched._make(row) for row in rows]

    async def claim_for_submit(
        self,
        conn: Connection,
        chosen: Sequence[Candidate],
        *,
        submitter: str,
        server: UUID,
        token: UUID,
        now: datetime | None,
    ) -> list[Claimed]:
        """Turn locked entries into executions that this server is about to submit elsewhere."""
        rows = await self._sql["dispatch/claim_for_submit"].fetch(
            conn,
            ids=[candidate.id for candidate in chosen],
            sequence=self._sequence,
            submitter=submitter,
            server=server,
            token=token,
            now=now,
        )
        return [Claimed._make(row) for row in rows]

    async def submitted_if_held(self, conn: Connection, execution_id: int, token: UUID) -> bool:
        return await self._sql["dispatch/submitted"].fetchval(conn, id=execution_id, token=token) is not None

    async def requeue_if_held(
        self,
        conn: Connection,
        claimed: Claimed,
        token: UUID,
        error: BaseException,
        *,
        delay: timedelta,
        now: datetime | None,
    ) -> bool:
        """Close an execution whose submit failed and queue its entry again."""
        requeued = await self._sql["dispatch/requeue"].fetchval(
            conn,
            execution_id=claimed.execution_id,
            entry_id=claimed.entry_id,
            token=token,
            error_type=kind_of(error),
            error_message=message_of(error),
            delay=delay,
            now=now,
        )
        return requeued is not None

    async def fail_if_queued(
        self, conn: Connection, entry_id: int, failure: str, *, now: datetime | None
    ) -> Refused | None:
        """Take an entry that cannot be dispatched out of the queue, with the reason."""
        row = await self._sql["dispatch/fail"].fetchrow(conn, id=entry_id, failure=failure, now=now)
        return None if row is None else Refused._make(row)
