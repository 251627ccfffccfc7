"""Several servers manage the same manifests: nothing is queued twice, and a leader that dies or stands still
stops nobody.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.barrier import Barrier, armed
from tests.harness.child import tell
from tests.harness.waiting import NeverHappenedError, eventually
from tests.integration.manifests.manager.world import open_world

if TYPE_CHECKING:
    from interlock.manifests.manager import ManifestManager
    from interlock.store.database import Database
    from tests.integration.manifests.manager.world import World

MODULE = "tests.acceptance.test_manager_fleet"
IMPATIENT = {"idle": 0.5}
PATIENT = 60.0  # where a process waits at a barrier for another that is only starting, or reads a lot on a busy machine
QUICK = {"kind": "every", "interval_us": 20_000}

NO_LOCK, NO_COMPARE, NO_INDEXES = "lock", "compare-and-set", "indexes"
INDEXES = ("work_queue_one_queued_fire", "work_queue_one_entry_per_fire")
UNGUARDED = {
    NO_LOCK: {"manifest/lead": "select :schema::text is not null"},
    NO_COMPARE: {
        "manifest/hold": "select id from unnest(:ids::bigint[], :markers::timestamptz[], :versions::text[])"
        " as read (id, marker, version)"
    },
    NO_INDEXES: {},
}


async def manager_of(
    dsn: str, off: list[str], *, idle: float = PATIENT, **settings: Any
) -> tuple[Database, ManifestManager]:
    """A manager on the real clock, with some of its guards taken out."""
    from interlock.manifests.entry_policy import EntryPolicies
    from interlock.manifests.manager import ManifestManager
    from interlock.manifests.settings import ManifestSettings
    from interlock.observe.bus import discard
    from interlock.store.database import Database
    from interlock.store.settings import StoreSettings
    from interlock.store.sql import Catalog, compile_statement

    replaced = {name: text for guard in off for name, text in UNGUARDED.get(guard, {}).items()}

    class Unguarded(Catalog):
        def __getitem__(self, name):
            return (
                compile_statement(name, replaced[name], self.schema) if name in replaced else super().__getitem__(name)
            )

    database = Database(dsn, StoreSettings(tick_idle_timeout=timedelta(seconds=idle)))
    database.sql = Unguarded("interlock")
    chosen = ManifestSettings(**settings)
    policies = EntryPolicies(chosen, lambda _: None)
    return database, ManifestManager(database, chosen, policies=policies, max_crashes=3, emit=discard)


FINISH = """
WITH taken AS MATERIALIZED (
    SELECT id, manifest_id FROM interlock.work_queue WHERE state = 'queued' ORDER BY id FOR UPDATE SKIP LOCKED
), left_queue AS (
    UPDATE interlock.work_queue q SET state = 'dispatched', left_at = clock_timestamp() FROM taken WHERE q.id = taken.id
    RETURNING q.manifest_id
), unblocked AS (
    UPDATE interlock.manifest m SET next_run_at = planned_at FROM left_queue
    WHERE m.id = left_queue.manifest_id AND m.next_run_at IS NULL
)
SELECT manifest_id, count(*) FROM taken GROUP BY 1
"""


QUEUED_AGAIN = """
SELECT min(times) >= 2
FROM (
    SELECT count(q.id) AS times
    FROM interlock.manifest m LEFT JOIN interlock.work_queue q ON q.manifest_id = m.id GROUP BY m.id
) AS queued
"""


async def tick_over_and_over(dsn: str, cycles: int, off: list[str]) -> None:
    """Manage and, as a worker would, end what is queued, so that everything is due again and again.

    The first cycle that a process leads prepares its statements; meanwhile the others can skip all of theirs. So each
    goes on until it has led and everything was queued again.
    """
    database, manager = await manager_of(dsn, off)
    led = queued = doubles = cycle_number = 0
    again = False
    while cycle_number < cycles or not led or not again:
        cycle = await manager.tick()
        cycle_number, led, queued = cycle_number + 1, led + cycle.led, queued + cycle.queued
        taken = await database.retrying(lambda conn: conn.fetch(FINISH))
        doubles += sum(row["count"] > 1 for row in taken)
        if cycle_number >= cycles and not again:
            again = await database.retrying(lambda conn: conn.fetchval(QUEUED_AGAIN))
    tell("done", led=led, queued=queued, doubles=doubles)
    await database.close()


async def tick_once(dsn: str, off: list[str], settings: dict[str, Any]) -> None:
    database, manager = await manager_of(dsn, off, **settings)
    try:
        cycle = await manager.tick()
        tell("ticked", led=cycle.led, queued=cycle.queued)
    finally:
        await database.close()


async def repeated_fires(world: World) -> int:
    return await world.conn.fetchval(
        "SELECT count(*) FROM (SELECT FROM interlock.work_queue WHERE kind = 'scheduled'"
        " GROUP BY manifest_id, fire_key HAVING count(*) > 1) AS repeated"
    )


async def without_indexes(world: World) -> None:
    for name in INDEXES:
        await world.conn.execute(f"DROP INDEX interlock.{name}")


async def real_manifests(world: World, count: int, **columns: Any) -> None:
    world.clock.now = datetime.now(UTC) - timedelta(seconds=1)
    for number in range(count):
        await world.manifest(f"m{number}", **columns)


@pytest.mark.parametrize("off", [[], [NO_INDEXES], [NO_LOCK], [NO_LOCK, NO_INDEXES]], ids="-".join)
@pytest.mark.parametrize(
    ("processes", "cycles", "manifests"), [(3, 40, 30), pytest.param(8, 500, 200, marks=pytest.mark.slow)]
)
async def test_no_manifest_is_queued_twice_and_no_fire_has_two_entries(
    migrated, fleet, processes, cycles, manifests, off
):
    """With all guards, and with any one of them missing: each alone is enough, and they do not rely on each other."""
    async with open_world(migrated) as world:
        await real_manifests(world, manifests, schedule=QUICK)
        if NO_INDEXES in off:
            await without_indexes(world)
        children = fleet.start_many(processes, f"{MODULE}:tick_over_and_over", migrated, cycles, off)
        reports = [await child.expect("done", timeout=270) for child in children]
        assert all(report["led"] for report in reports)
        entries = await world.conn.fetchval("SELECT count(*) FROM interlock.work_queue")
        assert sum(report["queued"] for report in reports) == entries >= 2 * manifests
        assert sum(report["doubles"] for report in reports) == 0
        assert await repeated_fires(world) == 0


async def two_that_loaded_the_same(world: World, fleet, tmp_path, dsn: str, off: list[str]) -> int:
    """Both stand between load and create with the same manifests in hand; answers how many fires have two entries."""
    await real_manifests(world, 20)
    barriers = [Barrier(tmp_path, "manifests.before_create", copy) for copy in "ab"]
    children = [fleet.start(f"{MODULE}:tick_once", dsn, off, {}, env=armed(barrier)) for barrier in barriers]
    for barrier in barriers[: 2 if NO_LOCK in off else 1]:
        await barrier.reached()
    for barrier in barriers:
        barrier.release()
    for child in children:
        await child.expect("ticked")
    return await repeated_fires(world)


ROUNDS = [1, pytest.param(10, marks=pytest.mark.slow)]


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("off", [[NO_LOCK], [NO_LOCK, NO_INDEXES], [NO_LOCK, NO_COMPARE]], ids="-".join)
async def test_two_leaders_that_loaded_the_same_queue_it_once(postgres_dsn, fleet, tmp_path, off, rounds):
    assert await rounds_of(rounds, postgres_dsn, fleet, tmp_path, off) == [0] * rounds


@pytest.mark.parametrize("rounds", ROUNDS)
async def test_control_without_lock_compare_and_set_and_indexes_everything_is_queued_twice(
    postgres_dsn, fleet, tmp_path, rounds
):
    off = [NO_LOCK, NO_COMPARE, NO_INDEXES]
    assert await rounds_of(rounds, postgres_dsn, fleet, tmp_path, off) == [20] * rounds


async def rounds_of(rounds: int, server: str, fleet, tmp_path, off: list[str]) -> list[int]:
    from tests.harness import databases

    counts = []
    for number in range(rounds):
        (folder := tmp_path / str(number)).mkdir()
        dsn = databases.create_migrated(server)
        async with open_world(dsn) as world:
            if NO_INDEXES in off:
                await without_indexes(world)
            counts.append(await two_that_loaded_the_same(world, fleet, folder, dsn, off))
        databases.drop(server, dsn)
    return counts


async def leads(world: World) -> bool:
    return (await world.tick()).led


@pytest.mark.parametrize("failpoint", ["manifests.before_create", "manifests.held", "manifests.before_commit"])
async def test_a_leader_that_stands_still_in_the_middle_of_its_tick_stops_the_fleet_for_seconds_only(
    migrated, fleet, tmp_path, failpoint
):
    async with open_world(migrated) as world:
        await real_manifests(world, 5)
        barrier = Barrier(tmp_path, failpoint)
        leader = fleet.start(f"{MODULE}:tick_once", migrated, [], IMPATIENT, env=armed(barrier))
        await barrier.reached()
        leader.stop()
        began = time.monotonic()
        world.clock.now = datetime.now(UTC)
        cycle = await eventually(lambda: world_cycle(world))
        assert time.monotonic() - began < 15
        assert cycle.queued == 5
        barrier.release()
        leader.cont()
        assert await leader.wait() != 0
        assert len(await world.entries()) == 5


async def world_cycle(world: World):
    cycle = await world.tick()
    return cycle if cycle.led else None


async def test_control_without_the_limits_of_a_tick_the_fleet_waits_for_as_long_as_the_leader_sleeps(
    migrated, fleet, tmp_path
):
    async with open_world(migrated) as world:
        await real_manifests(world, 5)
        barrier = Barrier(tmp_path, "manifests.before_create")
        leader = fleet.start(f"{MODULE}:tick_once_without_limits", migrated, env=armed(barrier))
        await barrier.reached()
        leader.stop()
        with pytest.raises(NeverHappenedError):
            await eventually(lambda: leads(world), 3)


async def tick_once_without_limits(dsn: str) -> None:
    UNGUARDED["limits"] = {"session/limit": "select :statement_timeout::text, :idle_timeout::text"}
    await tick_once(dsn, ["limits"], IMPATIENT)


LARGE = """
INSERT INTO interlock.manifest (external_id, origin, train, input, group_id, schedule_kind, schedule, misfire,
                                misfire_threshold, planned_at, next_run_at)
SELECT 'm' || n, 'runtime', repeat('t', 6000), '{}', 1, 'every', '{"kind": "every", "interval_us": 3600000000}',
       'fire_once', interval '60 s', now() - interval '1 s', now() - interval '1 s'
FROM generate_series(1, 5000) n
"""
FETCHING = """
SELECT pid FROM pg_stat_activity
WHERE query LIKE '%interlock manifest/load%' AND pid <> pg_backend_pid() AND datname = current_database()
"""
HELD_UP = FETCHING + " AND wait_event_type = 'Lock'"
STUCK = FETCHING + " AND wait_event = 'ClientWrite'"


async def stopped_in_its_fetch(world: World, fleet, dsn: str, *, limits: bool) -> None:
    """A leader that is stopped while PostgreSQL sends it more than the line can hold.

    Its question is held up until it stands still, so that it cannot have read the answer before.
    """
    await world.conn.execute(LARGE)
    target = "tick_all" if limits else "tick_all_without_network_limit"
    await world.conn.execute("SELECT pg_advisory_lock(4711)")
    leader = fleet.start(f"{MODULE}:{target}", dsn)
    await eventually(lambda: world.conn.fetchval(HELD_UP), what="a leader that loads")
    leader.stop()
    await world.conn.execute("SELECT pg_advisory_unlock(4711)")
    await eventually(lambda: world.conn.fetchval(STUCK), what="an answer that nobody reads")


async def tick_all(dsn: str, *off: str) -> None:
    """All that a cycle reads, so that the answer exceeds the buffers of the line; it is given when the test says so."""
    from interlock.store.sql import source_of

    text, place = source_of("manifest/load"), "    where g.enabled\n"
    assert place in text
    held_up = text.replace(place, f"{place}      and pg_advisory_xact_lock_shared(4711)::text is not null\n")
    UNGUARDED["held up"] = {"manifest/load": held_up}
    await tick_once(dsn, ["held up", *off], {**IMPATIENT, "max_work_queue_entries_per_cycle": None})


async def tick_all_without_network_limit(dsn: str) -> None:
    UNGUARDED["network"] = {
        "session/limit": "select set_config('statement_timeout', :statement_timeout, true),"
        " set_config('idle_in_transaction_session_timeout', :idle_timeout, true)"
    }
    await tick_all(dsn, "network")


async def test_a_leader_that_is_stopped_in_the_middle_of_its_fetch_stops_the_fleet_for_seconds_only(migrated, fleet):
    async with open_world(migrated, tick_idle_timeout=timedelta(seconds=PATIENT)) as world:
        world.clock.now = datetime.now(UTC)
        await stopped_in_its_fetch(world, fleet, migrated, limits=True)
        assert await eventually(lambda: leads(world), 30)
        assert await world.conn.fetchval("SELECT count(*) FROM interlock.work_queue") == 200


async def test_control_without_the_limit_on_the_line_a_stuck_fetch_keeps_the_lead(migrated, fleet):
    async with open_world(migrated, tick_idle_timeout=timedelta(seconds=PATIENT)) as world:
        world.clock.now = datetime.now(UTC)
        await stopped_in_its_fetch(world, fleet, migrated, limits=False)
        with pytest.raises(NeverHappenedError):
            await eventually(lambda: leads(world), 3)


@pytest.mark.parametrize("failpoint", ["manifests.loaded", "manifests.held", "manifests.before_commit"])
async def test_a_leader_that_dies_in_the_middle_of_its_tick_leaves_nothing_behind(migrated, fleet, failpoint):
    async with open_world(migrated) as world:
        await real_manifests(world, 5)
        before = await world.conn.fetch("SELECT * FROM interlock.manifest ORDER BY id")
        leader = fleet.start(f"{MODULE}:tick_once", migrated, [], {}, env=armed(exit_at=[failpoint]))
        assert await leader.wait() == 137
        assert await world.entries() == []
        assert await world.conn.fetch("SELECT * FROM interlock.manifest ORDER BY id") == before
        world.clock.now = datetime.now(UTC)
        cycle = await eventually(lambda: world_cycle(world))
        assert cycle.queued == 5
