"""Several processes that seed at the same time: one after the other, without error, with one result."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from interlock import failpoints
from interlock.manifests.declare import Declarations
from interlock.manifests.seed import Seeding
from interlock.manifests.settings import ManifestSettings
from interlock.model.schedule import every
from interlock.store.database import Database
from interlock.store.declaration import DeclaredManifests
from interlock.store.settings import StoreSettings
from interlock.store.sql import Statement
from interlock.trains.registry import Registry
from tests.harness.barrier import Barrier, armed
from tests.harness.child import tell
from tests.harness.waiting import eventually

HOURLY = every(hours=1)
MANIFESTS = 300


async def seed_in_child(dsn: str, app: str, priority: int, rounds: int) -> None:
    """Seed the same manifests over and over, each round with other words; run in a process of its own."""
    database = Database(dsn, StoreSettings())
    tell("ready")
    for number in range(rounds):
        declarations = declared(priority + number, shuffled=priority % 2 == 1)
        seeding = Seeding(
            database,
            declarations,
            app=app,
            server=lambda: None,
            prune=True,
            interval=timedelta(minutes=1),
            emit=lambda _: None,
        )
        await seeding.seed()
    tell("done")
    await database.close()


def declared(priority: int, *, shuffled: bool) -> Declarations:
    trains = Registry()
    train = trains.train(work, name="work")
    declarations = Declarations(trains, ManifestSettings(), max_input_bytes=1000)
    for group in sorted(("x", "y", "z"), reverse=shuffled):
        declarations.group(group, max_active_jobs=None, priority=priority % 32, enabled=None)
    for number in sorted(range(MANIFESTS), reverse=shuffled):
        options = {"priority": priority % 64, "group": "xyz"[number % 3]}
        declarations.schedule(f"m{number:04}", train.bind(), HOURLY, options)
    return declarations


def work() -> None: ...


async def test_processes_that_seed_different_words_at_once_neither_deadlock_nor_fail(migrated, fleet, world):
    processes = [fleet.start(seed_in_child, migrated, "shop", start, 8) for start in (0, 101, 202, 303)]
    for process in processes:
        await process.expect("done", 60)
        assert await process.wait() == 0
    assert len(await world.manifests()) == MANIFESTS
    # The last who spoke prevails everywhere: no mixture of two versions is ever stored.
    said = await world.conn.fetch("SELECT DISTINCT priority, declared -> 'priority' AS said FROM interlock.manifest")
    assert len(said) == 1
    assert str(said[0]["priority"]) == said[0]["said"]


@pytest.fixture
async def both_compare_first(world):
    """Two seedings that both compare before either writes, if nothing keeps them from it."""
    await world.seed(world.version())  # its train is known, so that only the manifests are left to quarrel about
    compared = []

    async def wait_for_the_other() -> None:
        compared.append(1)
        await eventually(two_or_waiting, what="the other, compared or held back")

    async def two_or_waiting() -> bool:
        return len(compared) == 2 or await waiting(world)

    failpoints.arm("manifests.write.compared", wait_for_the_other)
    yield
    failpoints.disarm()


async def seed_twice(world) -> list:
    versions = [world.version(), world.version()]
    for version in versions:
        version.schedule("m", version.greet.bind(), HOURLY)
    return await asyncio.gather(*(world.seed(version) for version in versions), return_exceptions=True)


async def test_control_without_the_lock_the_second_of_two_fails(world, both_compare_first, monkeypatch):
    async def no_lock(*_: object) -> None: ...

    monkeypatch.setattr(DeclaredManifests, "lock", no_lock)
    outcomes = await seed_twice(world)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Seeded", "UniqueViolationError"]


async def test_with_the_lock_the_second_compares_after_the_first_has_written(world, both_compare_first):
    outcomes = await seed_twice(world)
    assert sorted((outcome.created, outcome.unchanged) for outcome in outcomes) == [(0, 1), (1, 0)]


async def test_a_process_that_stands_still_while_it_seeds_keeps_nobody_from_starting_and_begins_anew(
    migrated, fleet, world, tmp_path
):
    barrier = Barrier(tmp_path, "manifests.write.compared")
    stopped = fleet.start(seed_in_child, migrated, "shop", 1, 1, env=armed(barrier))
    await barrier.reached()
    stopped.stop()
    version = world.version()
    version.schedule("mine", version.greet.bind(), HOURLY)
    async with asyncio.timeout(60):
        assert (await world.seed(version)).created == 1
    assert await world.manifests() == ["mine"]
    barrier.release()
    stopped.cont()
    await stopped.expect("done", 60)  # its transaction was ended, so it began anew
    assert len(await world.manifests()) == MANIFESTS + 1


async def hold_between(dsn: str) -> None:
    """The child: has the lock of those who declare, and a statement that is prepared and not executed."""
    database = Database(dsn, StoreSettings())
    async with database.tick() as conn:
        await DeclaredManifests(database.sql).lock(conn)
        await conn.prepare("SELECT 1 + 2")
        tell("holds")
        await asyncio.Event().wait()


async def test_a_process_that_stands_still_where_no_timeout_ends_it_keeps_nobody_from_starting(migrated, fleet, world):
    stopped = fleet.start(hold_between, migrated)
    await stopped.expect("holds")
    stopped.stop()
    version = world.version()
    version.schedule("mine", version.greet.bind(), HOURLY)
    async with asyncio.timeout(60):
        assert (await world.seed(version)).created == 1


async def test_a_process_that_is_killed_while_it_seeds_leaves_nothing_behind(migrated, fleet, world):
    killed = fleet.start(seed_in_child, migrated, "shop", 1, 1, env=armed(exit_at=["manifests.write.compared"]))
    assert await killed.wait() == 137
    await eventually(lambda: idle(world), 60, "the end of its transaction")
    assert (await world.manifests(), set(await world.groups())) == ([], {"default"})


async def idle(world) -> bool:
    others = await world.conn.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    return others == 0


async def edit_while_a_run_ends(world) -> dict:
    """An edit that finds its manifest active and waits for the row, which the settle holds that ends the run."""

    def code(minutes: int):
        version = world.version()
        version.schedule("m", version.greet.bind(), every(minutes=minutes))
        return version

    await world.seed(code(60))
    await world.set("m", next_run_at=None)
    execution = await world.execute("m")
    other = await asyncpg.connect(world.dsn)
    try:
        async with other.transaction():
            await other.execute(
                "UPDATE interlock.execution SET state = 'cancelled', ended_at = now() WHERE id = $1", execution
            )
            await other.execute("UPDATE interlock.manifest SET next_run_at = planned_at")
            editing = asyncio.create_task(world.seed(code(90)))
            await eventually(lambda: waiting(world), 60, "an edit that waits for the row")
        await editing
    finally:
        await other.close()
    return await world.manifest("m")


async def test_an_edit_that_waited_for_a_settle_sees_that_the_run_has_ended(world):
    row = await edit_while_a_run_ends(world)
    assert row["next_run_at"] == row["planned_at"] is not None


async def test_control_an_edit_that_decides_before_it_holds_the_row_loses_the_marker(world, monkeypatch):
    hold, decided = DeclaredManifests.hold, {}

    async def decide_and_hold(self, conn, ids):
        active = await conn.fetchval("SELECT count(*) FROM interlock.execution WHERE state = 'pending'")
        decided["marker"] = "NULL" if active else "planned_at"
        return await hold(self, conn, ids)

    async def mark_as_decided(_self, conn, _ids) -> bool:
        await conn.execute(f"UPDATE interlock.manifest SET next_run_at = {decided['marker']}")
        return True

    monkeypatch.setattr(DeclaredManifests, "hold", decide_and_hold)
    monkeypatch.setattr(DeclaredManifests, "mark", mark_as_decided)
    assert (await edit_while_a_run_ends(world))["next_run_at"] is None


async def waiting(world) -> bool:
    return await world.conn.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )


async def seed_many(world, count: int) -> tuple[float, float]:
    """How long the first and the second seeding of so many manifests take, in seconds."""
    loop, took = asyncio.get_running_loop(), []
    for _ in range(2):
        version = world.version()
        etl = version.group("etl", max_active_jobs=3)
        many = [(n, version.greet.bind(f"{n}")) for n in range(count // 2)]
        version.schedule_many("m", many, every(minutes=5), group=etl, variance=timedelta(minutes=1)).then_many(
            "d", many
        )
        began = loop.time()
        seeded = await world.seeding(version, await world.register()).seed()
        took.append(loop.time() - began)
    assert (seeded.created, seeded.changed, seeded.unchanged) == (0, 0, count)
    print(f"\n{count} manifests: first {took[0]:.2f} s, again {took[1]:.2f} s")
    return took[0], took[1]


async def test_the_number_of_statements_does_not_grow_with_the_number_of_manifests(world, monkeypatch):
    async def statements(count: int) -> int:
        sent = []
        for verb in ("fetch", "fetchval", "execute"):
            original = getattr(Statement, verb)

            def counted(self, conn, _original=original, **values):
                sent.append(self.name)
                return _original(self, conn, **values)

            monkeypatch.setattr(Statement, verb, counted)
        version = world.version()
        version.schedule_many(f"m{count}", [(n, version.greet.bind()) for n in range(count)], HOURLY)
        await world.seed(version)
        monkeypatch.undo()
        return len(sent)

    assert await statements(3) == await statements(300)


@pytest.mark.slow
async def test_ten_thousand_manifests_are_seeded_in_seconds_and_found_unchanged_in_less(world):
    first, again = await seed_many(world, 10_000)
    assert first < 10
    assert again < 3
