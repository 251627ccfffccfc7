"""What an explanation looks at: a few rows, each found by an index, and counts that stop at a limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta

    from interlock.store.connection import Connection, Record
    from interlock.store.sql import Catalog

MOST = 1000
"""Where counting stops: more than that says no more than that."""
SHOWN = 5
LARGEST_ID = 2**63 - 1

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFacts:
    id: int
    external_id: str
    train: str
    group_id: int
    schedule_kind: str
    schedule: str
    time_zone: str
    exclusions: str
    misfire: str
    misfire_threshold: timedelta
    enabled: bool
    planned_at: datetime | None
    planned_offset: timedelta
    next_run_at: datetime | None
    consumed_execution_id: int | None
    write_error: str | None
    write_failures: int
    write_retry_at: datetime | None
    created_at: datetime
    last_success_at: datetime | None
    parent: str | None
    parent_enabled: bool | None
    parent_success_id: int | None
    parent_success_at: datetime | None
    parent_success_on_record: bool
    dead_letter_id: int | None
    entry_id: int | None
    execution_id: int | None
    last_fire_key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFacts:
    id: int
    state: str
    kind: str
    train: str
    manifest_id: int | None
    attempt: int
    max_attempts: int
    submits: int
    group_id: int
    group_priority: int
    priority: int
    created_at: datetime
    scheduled_at: datetime
    ready: bool
    left_at: datetime | None
    failure: str | None
    previous_execution_id: int | None
    previous_state: str | None
    previous_failure: str | None
    previous_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFacts:
    id: int
    message_id: str
    topic: str
    key: str | None
    partition: str | None
    state: str
    available_at: datetime
    expires_at: datetime | None
    claimed: bool
    claimed_by: str
    attempts: int
    crashes: int
    failure: str | None
    error_message: str | None
    published_at: datetime
    ended_at: datetime | None
    parked: bool
    parked_by: str | None
    breaker: str
    probe_at: datetime | None
    waiting_before: int | None
    ended_before: int | None
    ended_state: str | None
    drains: str
    """The tags of each live server that delivers, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionFacts:
    id: int
    state: str
    kind: str
    train: str
    manifest_id: int | None
    entry_id: int
    group_id: int
    attempt: int
    max_attempts: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    failure: str | None
    error_type: str | None
    submitter: str | None
    cancel_requested_at: datetime | None
    host: str | None
    server: str | None
    server_state: str | None
    held: bool
    lease_over: timedelta | None
    group_priority: int | None
    priority: int | None
    queued_at: datetime | None
    offered: bool
    dead_letter_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Switches, caps in use and who lives, as far as they concern one group and one train."""

    now: datetime
    group_name: str | None
    group_enabled: bool
    group_cap: int | None
    group_active: int
    active: int
    pauses: Sequence[str]
    servers: int
    managers: int
    dispatchers: int
    fleet_cap: int | None
    """The largest `max_active_jobs` of live dispatchers; None where one has none."""
    uncounted: Sequence[str]
    runners: int
    timer_servers: int
    workers: Sequence[str]
    slots: int
    full: int
    """Of the workers, those without a free slot; `at_limit` have one, but run as many of the train as they may."""
    at_limit: int
    with_room: int
    rivals: Sequence[str]
    routed: bool
    """Live dispatchers submit the train elsewhere; `workers` are the runners then, if that is where it goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapHolder:
    id: int
    train: str
    state: str
    server: str | None
    started_at: datetime | None
    external_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    pid: int
    username: str | None
    application: str | None
    state: str | None
    age: timedelta


class Explaining:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def lineage(
        self, conn: Connection, *, execution_id: int | None = None, entry_id: int | None = None
    ) -> int | None:
        found: int | None = await self._sql["explain/lineage"].fetchval(
            conn, execution_id=execution_id, entry_id=entry_id
        )
        return found

    async def manifest(
        self,
        conn: Connection,
        *,
        id: int | None = None,  # noqa: A002  the row's own word
        external_id: str | None = None,
    ) -> ManifestFacts | None:
        row = await self._sql["explain/manifest"].fetchrow(conn, id=id, external_id=external_id)
        return _one(ManifestFacts, row)

    async def entry(
        self,
        conn: Connection,
        *,
        id: int | None = None,  # noqa: A002  see manifest
        lineage: int | None = None,
    ) -> EntryFacts | None:
        """The entry, or the latest one of a lineage."""
        return _one(EntryFacts, await self._sql["explain/entry"].fetchrow(conn, id=id, lineage=lineage))

    async def execution(
        self,
        conn: Connection,
        *,
        id: int | None = None,  # noqa: A002  see manifest
        lineage: int | None = None,
    ) -> ExecutionFacts | None:
        """The execution, or the latest one of a lineage."""
        return _one(ExecutionFacts, await self._sql["explain/execution"].fetchrow(conn, id=id, lineage=lineage))

    async def message(self, conn: Connection, name: str) -> MessageFacts | None:
        """By its number or by its message id."""
        numbered = name.isascii() and name.isdecimal() and int(name) < LARGEST_ID
        row = await self._sql["explain/message"].fetchrow(conn, id=int(name) if numbered else None, message_id=name)
        return _one(MessageFacts, row)

    async def surroundings(
        self,
        conn: Connection,
        *,
        train: str | None,
        group_id: int | None,
        excluded: Sequence[str],
        now: datetime | None,
    ) -> Surroundings:
        row = await self._sql["explain/surroundings"].fetchrow(
            conn, train=train, group_id=group_id, excluded=list(excluded), most=MOST, now=now
        )
        found = _one(Surroundings, row)
        if found is None:
            raise AssertionError("a statement that always answers a row answered none")
        return found

    async def holders(self, conn: Connection, group_id: int) -> list[CapHolder]:
        """Who uses up the capacity of a group, the longest first."""
        rows = await self._sql["explain/holders"].fetch(conn, group_id=group_id, most=MOST, limit=SHOWN)
        return [CapHolder(**dict(row)) for row in rows]

    async def ahead_of_entry(self, conn: Connection, entry: EntryFacts, rivals: Sequence[str]) -> int:
        """How much the workers of these trains take first: what is dispatched already, and better entries."""
        entries: int = await self._sql["explain/entries_ahead"].fetchval(
            conn,
            rivals=list(rivals),
            rank=entry.group_priority,
            priority=entry.priority,
            created_at=entry.created_at,
            id=entry.id,
            most=MOST,
        )
        return entries + await self._jobs(conn, rivals, None, None, None, None)

    async def ahead_of_job(self, conn: Connection, execution: ExecutionFacts, rivals: Sequence[str]) -> int:
        """How many dispatched jobs the workers of these trains claim first."""
        found = execution
        return await self._jobs(conn, rivals, found.group_priority, found.priority, found.queued_at, found.entry_id)

    async def _jobs(
        self,
        conn: Connection,
        rivals: Sequence[str],
        rank: int | None,
        priority: int | None,
        created_at: datetime | None,
        entry_id: int | None,
    ) -> int:
        jobs: int = await self._sql["explain/jobs_ahead"].fetchval(
            conn, rivals=list(rivals), rank=rank, priority=priority, created_at=created_at, id=entry_id, most=MOST
        )
        return jobs

    async def transactions(self, conn: Connection, *, older_than: timedelta) -> list[OpenTransaction]:
        """Transactions open for longer that have locked rows or tables of ours."""
        rows = await self._sql["explain/transactions"].fetch(conn, schema=self._sql.schema, older_than=older_than)
        return [OpenTransaction(**dict(row)) for row in rows]


def _one(kind: Callable[..., T], row: Record | None) -> T | None:
    return None if row is None else kind(**dict(row))
