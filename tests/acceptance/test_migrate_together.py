"""Ten processes migrate the same empty database at once, as a fresh deploy of ten servers does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg
import pytest

from interlock.store import migrate
from interlock.store.sql import Catalog, compile_statement
from tests.harness import databases
from tests.harness.barrier import Barrier, armed
from tests.harness.child import tell
from tests.harness.waiting import eventually

if TYPE_CHECKING:
    from tests.harness.processes import Fleet

PROCESSES = 10


class WithoutLock(Catalog):
    def __getitem__(self, name):
        text = "select :name::text is not null" if name == "schema_version/try_lock" else None
        return super().__getitem__(name) if text is None else compile_statement(name, text, self.schema)


async def migrate_each(dsns: list[str], folder: str) -> None:
    """The child: connects, meets the others at the start of every round, and migrates."""
    for number, dsn in enumerate(dsns):
        conn = await asyncpg.connect(dsn)
        tell("ready")
        await eventually((Path(folder) / f"start-{number}").exists, 60, "the start of the round")
        await migrate_and_tell(conn)
        await conn.close()


async def migrate_without_lock(dsn: str) -> None:
    migrate.Catalog = WithoutLock
    conn = await asyncpg.connect(dsn)
    await migrate_and_tell(conn)
    await conn.close()


async def migrate_and_tell(conn: asyncpg.Connection) -> None:
    try:
        applied = await migrate.apply(conn, "interlock")
    except Exception as error:  # noqa: BLE001  the parent decides what it means
        tell("failed", error=f"{type(error).__name__}: {error}")
    else:
        tell("applied", before=applied.before, after=applied.after)


async def run_rounds(fleet: Fleet, folder: Path, dsns: list[str]) -> None:
    processes = fleet.start_many(PROCESSES, f"{__name__}:migrate_each", dsns, str(folder))
    for number, dsn in enumerate(dsns):
        for process in processes:
            await process.expect("ready", 60)
        (folder / f"start-{number}").touch()
        answers = [await process.expect("applied") for process in processes]
        last = migrate.code_version()
        assert sorted(answer["before"] for answer in answers) == [0] + [last] * (PROCESSES - 1)
        assert {answer["after"] for answer in answers} == {last}
        await assert_each_migration_once(dsn)


async def assert_each_migration_once(dsn: str) -> None:
    conn = await asyncpg.connect(dsn)
    try:
        rows = await conn.fetch("SELECT version FROM interlock.schema_version ORDER BY version")
        assert [row["version"] for row in rows] == [each.version for each in migrate.migrations()]
        assert await migrate.missing_objects(conn, "interlock") == []
    finally:
        await conn.close()


@pytest.fixture
def empty(postgres_dsn):
    """Makes empty databases."""
    made: list[str] = []

    def make(count: int) -> list[str]:
        made.extend(databases.create(postgres_dsn) for _ in range(count))
        return made

    yield make
    for dsn in made:
        databases.drop(postgres_dsn, dsn)


async def test_ten_processes_migrate_one_empty_database_and_each_migration_runs_once(fleet, tmp_path, empty):
    await run_rounds(fleet, tmp_path, empty(2))


@pytest.mark.slow
async def test_ten_processes_migrate_twenty_empty_databases(fleet, tmp_path, empty):
    await run_rounds(fleet, tmp_path, empty(20))


async def fail_without_lock(fleet: Fleet, folder: Path, dsn: str, count: int) -> None:
    await asyncio.to_thread(folder.mkdir)
    barriers = [Barrier(folder, "migrate.before_script", copy=str(number)) for number in range(count)]
    processes = [fleet.start(f"{__name__}:migrate_without_lock", dsn, env=armed(barrier)) for barrier in barriers]
    await asyncio.gather(*(barrier.reached(60) for barrier in barriers))
    for barrier in barriers:
        barrier.release()
    for process in processes:
        await process.wait()
    assert sum(len(process.heard("applied")) for process in processes) == 1
    assert sum(len(process.heard("failed")) for process in processes) == count - 1


async def test_control_without_the_lock_processes_that_saw_an_empty_database_fail(fleet, tmp_path, empty):
    await fail_without_lock(fleet, tmp_path / "control", *empty(1), count=3)


@pytest.mark.slow
async def test_control_without_the_lock_it_fails_ten_times_of_ten(fleet, tmp_path, empty):
    for number, dsn in enumerate(empty(10)):
        await fail_without_lock(fleet, tmp_path / f"control-{number}", dsn, count=3)
