"""A database with groups, manifests and runs in the hands of a test, and a manager with a clock that the test moves."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import asyncpg

from interlock.manifests.entry_policy import EntryPolicies
from interlock.manifests.manager import ManifestManager
from interlock.manifests.settings import ManifestSettings
from interlock.model.lifecycle import ExecutionState
from interlock.model.outcome import Ending
from interlock.runtime.clock import FakeClock
from interlock.store.database import Database
from interlock.store.execution import Executions
from interlock.store.settings import StoreSettings
from interlock.upkeep.sweep import Sweep

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from interlock.manifests.manager import Cycle
    from interlock.model.outcome import Ended
    from interlock.observe.events.base import Event

START = datetime(2030, 5, 6, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOURLY = {"kind": "every", "interval_us": 3_600_000_000}
COMPLETED, FAILED, CANCELLED = ExecutionState.COMPLETED, ExecutionState.FAILED, ExecutionState.CANCELLED


class World:
    def __init__(self, database: Database, conn: asyncpg.Connection) -> None:
        self.database, self.conn, self.clock = database, conn, FakeClock(START)
        self.events: list[Event] = []
        self.executions = Executions(database.sql)
        self.sweep = Sweep(database, emit=self.events.append, clock=self.clock)

    @property
    def now(self) -> datetime:
        return self.clock.now

    def manager(self, options_of=lambda _: None, **settings: Any) -> ManifestManager:
        chosen = ManifestSettings(**settings)
        return ManifestManager(
            self.database,
            chosen,
            policies=EntryPolicies(chosen, options_of),
            max_crashes=3,
            emit=self.events.append,
            clock=self.clock,
            random=lambda: 0.5,
        )

    async def tick(self, **settings: Any) -> Cycle:
        return await self.manager(**settings).tick()

    def reasons(self, external_id: str) -> list[str]:
        """Why the manager left a manifest alone, in order."""
        return [
            event.reason
            for event in self.events
            if getattr(event, "external_id", None) == external_id and hasattr(event, "reason")
        ]

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    async def group(self, name: str, **columns: Any) -> int:
        return await self._insert("manifest_group", {"name": name, **columns})

    async def manifest(self, external_id: str, **columns: Any) -> int:
        """Due now, hourly, in the group `default`, unless the test says otherwise."""
        schedule = columns.pop("schedule", HOURLY)
        planned_at = columns.pop("planned_at", self.now)
        row = {
            "external_id": external_id,
            "origin": "runtime",
            "train": "t",
            "input": json.dumps({"of": external_id}),
            "group_id": 1,
            "schedule_kind": schedule["kind"],
            "schedule": json.dumps(schedule),
            "misfire": "fire_once",
            "misfire_threshold": timedelta(seconds=60),
            "planned_at": planned_at,
            "next_run_at": planned_at,
            **columns,
        }
        return await self._insert("manifest", row)

    async def dependent(self, external_id: str, parent: int, **columns: Any) -> int:
        """Woken by nobody yet, unless the test says otherwise."""
        schedule = {"kind": "dependent", "parent": "parent"}
        return await self.manifest(
            external_id, **{"planned_at": None, "schedule": schedule, **columns}, parent_id=parent
        )

    async def row(self, manifest: int) -> asyncpg.Record:
        return await self.conn.fetchrow("SELECT * FROM interlock.manifest WHERE id = $1", manifest)

    async def entries(self, manifest: int | None = None, state: str | None = None) -> list[asyncpg.Record]:
        return await self.conn.fetch(
            "SELECT * FROM interlock.work_queue WHERE ($1::bigint IS NULL OR manifest_id = $1)"
            " AND ($2::text IS NULL OR state = $2) ORDER BY id",
            manifest,
            state,
        )

    async def dead_letters(self, manifest: int) -> list[asyncpg.Record]:
        return await self.conn.fetch("SELECT * FROM interlock.dead_letter WHERE manifest_id = $1 ORDER BY id", manifest)

    async def start(self, entry: int, *, pending: bool = False, **columns: Any) -> asyncpg.Record:
        """Dispatch the entry and claim its execution, as a server that is registered nowhere, unless said otherwise."""
        claim = {} if pending else {"server_id": uuid4(), "claim_token": uuid4(), "started_at": self.now}
        values = {"state": "pending" if pending else "in_progress", **claim, **columns}
        return await self.conn.fetchrow(
            """
            WITH e AS (
                UPDATE interlock.work_queue SET state = 'dispatched', left_at = $2 WHERE id = $1 AND state = 'queued'
                RETURNING *
            )
            INSERT INTO interlock.execution (
                state, entry_id, first_entry_id, kind, train, input, manifest_id, fire_key, group_id, attempt, crashes,
                max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, timeout, created_at,
                server_id, claim_token, started_at, submitter)
            SELECT $3, id, coalesce(first_entry_id, id), kind, train, input, manifest_id, fire_key, group_id, attempt,
                crashes, max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff,
                coalesce($4, timeout), $2, $5, $6, $7, $8
            FROM e RETURNING *
            """,
            entry,
            self.now,
            values["state"],
            values.get("timeout"),
            values.get("server_id"),
            values.get("claim_token"),
            values.get("started_at"),
            values.get("submitter"),
        )

    async def end(self, execution: asyncpg.Record, state: ExecutionState = COMPLETED, **what: Any) -> list[Ended]:
        """As a worker would; a failure is an `error` unless the test says otherwise."""
        if state is FAILED:
            what = {"failure": "error", **what}
        ending = Ending(execution["id"], execution["claim_token"], state, **what)
        async with self.database.transaction() as conn:
            return await self.executions.end(conn, [ending], now=self.now)

    async def run_next(self, manifest: int, state: ExecutionState = COMPLETED, **what: Any) -> asyncpg.Record:
        """Run the queued entry of a manifest to its end; answers the execution."""
        [entry] = await self.entries(manifest, "queued")
        execution = await self.start(entry["id"])
        await self.end(execution, state, **what)
        return execution

    async def server(self, state: str = "alive", lease_until: timedelta = timedelta(hours=1)):
        row = await self.conn.fetchval(
            "INSERT INTO interlock.server (id, name, roles, trains, tags, slots, host, pid, version, state, lease,"
            " lease_until, renewed_at, steady_since, started_at, ended_at) VALUES (gen_random_uuid(), 's', '{}', '{}',"
            " '{}', 1, 'h', 1, '0', $1, interval '10 s', now() + $2, now(), now(), now(),"
            " CASE WHEN $1 IN ('lost', 'gone') THEN now() END) RETURNING id",
            state,
            lease_until,
        )
        assert row is not None
        return row

    async def _insert(self, table: str, row: dict[str, Any]) -> int:
        columns, places = ", ".join(row), ", ".join(f"${number + 1}" for number in range(len(row)))
        statement = f"INSERT INTO interlock.{table} ({columns}) VALUES ({places}) RETURNING id"
        return await self.conn.fetchval(statement, *row.values())


@asynccontextmanager
async def open_world(dsn: str, **settings: Any) -> AsyncIterator[World]:
    database = Database(dsn, StoreSettings(**settings))
    conn = await asyncpg.connect(dsn, timeout=60, command_timeout=60)
    try:
        yield World(database, conn)
    finally:
        await conn.close()
        await database.close()
