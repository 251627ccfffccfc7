"""One tick of the manager with 100 due of a thousand and of a million manifests: it costs what is due.

Every statement of a tick is explained where it runs, with the buffers that it touches; what the plan says is rolled
back before the statement itself runs.
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import asyncpg

from bench.frame import Measure, Report, ratio, throwaway_database, timed
from interlock.manifests.entry_policy import EntryPolicies
from interlock.manifests.manager import ManifestManager
from interlock.manifests.settings import ManifestSettings
from interlock.observe.bus import discard
from interlock.store.database import Database
from interlock.store.settings import StoreSettings
from interlock.store.sql import Catalog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.frame import Arguments
    from interlock.store.sql import Statement

SIZES = (1_000, 100_000, 1_000_000)
DUE = 100
GROUPS = 20
PAST = 20_000  # entries and dead letters, and ten times as many runs: the same for every number of manifests
SMALL = {"manifest_group", "server", "train"}  # a handful of rows each: reading them whole is the plan

FILL = (
    "INSERT INTO interlock.manifest_group (name) SELECT 'g' || n FROM generate_series(2, {groups}) n",
    """
    INSERT INTO interlock.manifest (external_id, origin, train, input, group_id, schedule_kind, schedule, misfire,
                                    misfire_threshold, planned_at, next_run_at, last_success_at)
    SELECT 'm' || n, 'runtime', 't', '{{}}', 1 + n % {groups}, 'every',
           '{{"kind": "every", "interval_us": 3600000000}}', 'fire_once', interval '60 s',
           now() + interval '1 day' + n * interval '1 s',
           now() + interval '1 day' + n * interval '1 s', now()
    FROM generate_series(1, {size}) n
    """,
    """
    INSERT INTO interlock.execution (state, entry_id, first_entry_id, kind, train, input, manifest_id, group_id,
        attempt, crashes, max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, created_at,
        started_at, ended_at, failure)
    SELECT CASE WHEN n % 10 = 0 THEN 'failed' ELSE 'completed' END, n, n, 'scheduled', 't', '{{}}', 1 + n % {size},
           1 + n % {groups}, 1, 0, 3, 3, '1 s', '1 s', 1, now() - n * interval '1 s', now() - n * interval '1 s',
           now() - n * interval '1 s', CASE WHEN n % 10 = 0 THEN 'error' END
    FROM generate_series(1, {past} * 10) n
    """,
    """
    INSERT INTO interlock.dead_letter (reason, kind, train, input, manifest_id, first_entry_id, group_id, priority,
                                       attempts, state, resolved_at)
    SELECT 'max_attempts', 'scheduled', 't', '{{}}', n, n, 1, 0, 3, 'acknowledged', now()
    FROM generate_series(1, {past}) n
    """,
    """
    INSERT INTO interlock.work_queue (state, kind, train, input, manifest_id, attempt, max_attempts, max_crashes,
        retry_delay, max_retry_delay, retry_backoff, group_id, group_priority, priority, ready, left_at, fire_key)
    SELECT 'dispatched', 'scheduled', 't', '{{}}', n, 1, 3, 3, '1 s', '1 s', 1, 1, 0, 0, true, now(), 'earlier'
    FROM generate_series(1, {past}) n
    """,
    """
    INSERT INTO interlock.background_job (execution_id, train, group_priority, priority, created_at, entry_id)
    SELECT 100000000 + n, 't', 0, 0, now(), n FROM generate_series(1, {past}) n
    """,
)
MAKE_DUE = """
UPDATE interlock.manifest SET planned_at = now() - interval '1 s', next_run_at = now() - interval '1 s'
WHERE id IN (SELECT 1 + (n * 997 + $1 * 7919) % $2 FROM generate_series(1, $3::bigint) n)
"""
CLEAR = "UPDATE interlock.work_queue SET state = 'dispatched', left_at = now() WHERE state = 'queued'"


@dataclass
class Explained:
    """A statement that is explained, and rolled back, before it runs."""

    statement: Statement
    plans: list[tuple[str, dict[str, Any]]]

    async def fetch(self, conn: Any, **values: Any) -> Any:
        await self._explain(conn, values)
        return await self.statement.fetch(conn, **values)

    async def fetchval(self, conn: Any, **values: Any) -> Any:
        await self._explain(conn, values)
        return await self.statement.fetchval(conn, **values)

    async def execute(self, conn: Any, **values: Any) -> Any:
        await self._explain(conn, values)
        return await self.statement.execute(conn, **values)

    async def _explain(self, conn: Any, values: dict[str, Any]) -> None:
        transaction = conn.transaction()
        await transaction.start()
        text = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {self.statement.asyncpg}"
        plan = await conn.fetchval(text, *self.statement.arguments(values))
        await transaction.rollback()
        self.plans.append((self.statement.name, json.loads(plan)[0]["Plan"]))


@dataclass
class ExplainedCatalog(Catalog):
    """Explains the statements of the manager."""

    schema: str = "interlock"
    plans: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __getitem__(self, name: str) -> Any:
        statement = super().__getitem__(name)
        return Explained(statement, self.plans) if name.startswith("manifest/") else statement


def buffers(plan: dict[str, Any]) -> int:
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def sequential_scans(plans: list[tuple[str, dict[str, Any]]]) -> set[str]:
    """The tables that are read whole, those excepted that hold a handful of rows."""
    scans = {
        (name, node["Relation Name"])
        for name, plan in plans
        for node in nodes(plan)
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] not in SMALL
    }
    return {f"{name}: {table}" for name, table in scans}


class World:
    """Manifests of which none is due, with a past."""

    def __init__(self, dsn: str, size: int) -> None:
        self.size, self._dsn, self._rounds = size, dsn, 0
        self.database = Database(dsn, StoreSettings(dsn=dsn))
        self.manager = self._manager(self.database)

    async def fill(self) -> None:
        await self._run(*(text.format(size=self.size, groups=GROUPS, past=PAST) for text in FILL), "ANALYZE")

    async def make_due(self, count: int = DUE) -> None:
        """Others than before; what was queued before is on its way."""
        self._rounds += 1
        await self._run(CLEAR)
        conn = await asyncpg.connect(self._dsn)
        await conn.execute(MAKE_DUE, self._rounds, self.size, count)
        await conn.execute("VACUUM interlock.manifest")
        await conn.close()

    async def explain(self) -> list[tuple[str, dict[str, Any]]]:
        """The plans of one tick."""
        await self.make_due()
        database = Database(self._dsn, StoreSettings(dsn=self._dsn))
        database.sql = catalog = ExplainedCatalog()
        await self._manager(database).tick()
        await database.close()
        return catalog.plans

    async def close(self) -> None:
        await self.database.close()

    def _manager(self, database: Database) -> ManifestManager:
        settings = ManifestSettings()
        policies = EntryPolicies(settings, lambda _: None)
        return ManifestManager(database, settings, policies=policies, max_crashes=3, emit=discard)

    async def _run(self, *statements: str) -> None:
        conn = await asyncpg.connect(self._dsn)
        for statement in statements:
            await conn.execute(statement)
        await conn.close()


async def run(arguments: Arguments) -> Report:
    async with AsyncExitStack() as stack:
        worlds = [await _world(stack, arguments, size) for size in SIZES]
        plans = [await world.explain() for world in worlds]
        samples = await _samples(worlds, arguments.rounds)
    touched = [sum(buffers(plan) for _, plan in found) for found in plans]
    smallest, *_, largest = (f"{world.size:,}" for world in worlds)
    times = [Measure(f"a tick with {DUE} due of {name}", "ms", [s * 1000 for s in samples[name]]) for name in samples]
    facts = {
        **{f"buffers of a tick, of {world.size:,}": count for world, count in zip(worlds, touched, strict=True)},
        "buffers, largest / smallest": round(touched[-1] / touched[0], 2),
        "sequential scans": sorted(set().union(*(sequential_scans(found) for found in plans[1:]))),
    }
    return Report([*times, ratio(samples, largest, smallest)], facts)


async def _world(stack: AsyncExitStack, arguments: Arguments, size: int) -> World:
    dsn = await stack.enter_async_context(throwaway_database(arguments.dsn))
    world = World(dsn, max(size, DUE * 2) if size == SIZES[0] else max(arguments.scaled(size), DUE * 2))
    stack.push_async_callback(world.close)
    await world.fill()
    return world


async def _samples(worlds: list[World], rounds: int) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {f"{world.size:,}": [] for world in worlds}
    for number in range(rounds):
        for world in worlds if number % 2 == 0 else reversed(worlds):
            await world.make_due()
            samples[f"{world.size:,}"].append(await timed(world.manager.tick))
    return samples
