"""Seeding: what code says is written, what operators made of it survives, what did not change is not touched."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from interlock.errors import OwnedByAnotherApp
from interlock.manifests import write
from interlock.model.exclusion import exclude
from interlock.model.schedule import cron, every, once
from interlock.observe.events.manifest import ManifestsSeeded
from interlock.runtime.clock import FakeClock
from interlock.store.database import Database
from interlock.store.settings import StoreSettings
from interlock.trains.options import Backoff

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
NOW = datetime(2030, 6, 4, 12, tzinfo=UTC)  # a Tuesday
HOURLY = every(hours=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOW)


async def test_every_kind_of_manifest_is_stored_with_its_plan_and_its_marker(world, clock):
    code = world.version()
    extract = code.schedule("extract", code.greet.bind("Bob"), HOURLY, variance=MINUTE, group="etl")
    extract.then("load", code.greet.bind())
    extract.then("repair", code.greet.bind(), dormant=True)
    code.schedule("nightly", code.greet.bind(), cron("0 3 * * *", tz="Europe/Berlin"))
    code.schedule("single", code.greet.bind(), once(after=HOUR))
    code.schedule("by-hand", code.greet.bind())
    code.schedule("off", code.greet.bind(), HOURLY, enabled=False)
    seeded = await world.seed(code, clock=clock)
    assert (seeded.created, seeded.changed, seeded.unchanged, seeded.pruned) == (7, 0, 0, ())
    rows = {name: await world.manifest(name) for name in await world.manifests()}
    assert {name: row["schedule_kind"] for name, row in rows.items()} == {
        "by-hand": "manual",
        "extract": "every",
        "load": "dependent",
        "nightly": "cron",
        "off": "every",
        "repair": "dormant",
        "single": "once",
    }
    planned = {name: row["planned_at"] for name, row in rows.items()}
    offset = rows["extract"]["planned_offset"]
    assert timedelta(0) <= offset <= MINUTE
    assert planned == {
        "by-hand": None,
        "extract": NOW + offset,
        "load": None,
        "nightly": datetime(2030, 6, 5, 1, tzinfo=UTC),
        "off": NOW,
        "repair": None,
        "single": NOW + HOUR,
    }
    assert {name: row["next_run_at"] for name, row in rows.items()} == {**planned, "off": None}
    assert rows["single"]["schedule"] == {"kind": "once", "at": "2030-06-04T13:00:00.000000+00:00"}
    assert rows["load"]["parent_id"] == rows["repair"]["parent_id"] == rows["extract"]["id"]
    assert (rows["extract"]["input"], rows["extract"]["app"], rows["extract"]["origin"]) == (
        {"name": "Bob"},
        "shop",
        "declared",
    )
    assert rows["extract"]["group_id"] == (await world.groups())["etl"]["id"]


async def test_every_option_reaches_its_column(world):
    code = world.version()
    code.schedule(
        "x",
        code.greet.bind(),
        HOURLY,
        tz="Europe/Berlin",
        variance=timedelta(microseconds=1),
        exclude=[exclude.window("22:00", "06:00")],
        misfire="skip",
        misfire_threshold=timedelta(days=40, microseconds=7),
        max_attempts=7,
        retry=Backoff(MINUTE, 1.5, HOUR),
        timeout=90 * MINUTE,
        priority=63,
    )
    await world.seed(code)
    row = await world.manifest("x")
    assert row["exclusions"] == [{"kind": "window", "start": "22:00:00", "end": "06:00:00"}]
    assert (row["time_zone"], row["variance"], row["misfire"]) == ("Europe/Berlin", timedelta(microseconds=1), "skip")
    assert row["misfire_threshold"] == timedelta(days=40, microseconds=7)
    assert (row["max_attempts"], row["timeout"], row["priority"]) == (7, 90 * MINUTE, 63)
    assert (row["retry_delay"], row["retry_backoff"], row["max_retry_delay"]) == (MINUTE, 1.5, HOUR)


async def test_a_deploy_that_changes_nothing_writes_no_row(world):
    def code():
        version = world.version()
        version.group("etl", max_active_jobs=3)
        first = version.schedule("a", version.greet.bind(), HOURLY, group="etl", variance=MINUTE)
        first.then_many("b", [(n, version.greet.bind(str(n))) for n in range(20)], retry_backoff=1.1)
        version.schedule("once", version.greet.bind(), once(after=HOUR))
        return version

    await world.start(code())
    before = await world.versions_of_rows()
    seeded = await world.seed(code())
    assert (seeded.created, seeded.changed, seeded.unchanged) == (0, 0, 22)
    assert await world.versions_of_rows() == before
    assert [type(event) for event in world.events] == [ManifestsSeeded, ManifestsSeeded]


async def test_control_a_deploy_that_changes_something_writes_just_that_row(world):
    def code(priority: int):
        version = world.version()
        version.schedule("a", version.greet.bind(), HOURLY)
        version.schedule("b", version.greet.bind(), HOURLY, priority=priority)
        return version

    await world.seed(code(1))
    before = await world.versions_of_rows()
    await world.seed(code(2))
    after = await world.versions_of_rows()
    assert {name for name in before if before[name][0] != after[name][0]} == {"manifest b"}


async def test_what_an_operator_switched_survives_deploys_until_code_speaks_of_it(world):
    def code(**options):
        version = world.version()
        version.schedule("x", version.greet.bind(), HOURLY, **options)
        return version

    await world.seed(code(priority=5))
    await world.set("x", enabled=False, priority=9, max_attempts=1, next_run_at=None)
    await world.seed(code(priority=5, timeout=HOUR))
    row = await world.manifest("x")
    assert (row["enabled"], row["priority"], row["max_attempts"], row["timeout"]) == (False, 9, 1, HOUR)
    assert row["next_run_at"] is None
    await world.seed(code(priority=6, timeout=HOUR))
    row = await world.manifest("x")
    assert (row["enabled"], row["priority"], row["max_attempts"]) == (False, 6, 1)


async def test_a_group_keeps_an_operators_cap_until_code_changes_it(world):
    def code(name: str = "shop", **switches):
        version = world.version(name)
        version.group("etl", **switches)
        return version

    await world.seed(code(max_active_jobs=3, priority=5))
    await world.conn.execute(
        "UPDATE interlock.manifest_group SET max_active_jobs = 1, enabled = false WHERE name = 'etl'"
    )
    await world.seed(code(max_active_jobs=3, priority=6))
    etl = (await world.groups())["etl"]
    assert (etl["max_active_jobs"], etl["priority"], etl["enabled"]) == (1, 6, False)
    await world.seed(code("other"))
    etl = (await world.groups())["etl"]
    assert (etl["max_active_jobs"], etl["priority"], etl["enabled"]) == (1, 6, False)
    await world.seed(code(enabled=True))
    etl = (await world.groups())["etl"]
    assert (etl["max_active_jobs"], etl["priority"], etl["enabled"]) == (None, 0, True)


async def test_a_changed_group_priority_reaches_what_is_queued(world):
    def code(priority: int):
        version = world.version()
        version.group("etl", priority=priority)
        version.schedule("x", version.greet.bind(), HOURLY, group="etl")
        return version

    await world.seed(code(1))
    entry = await world.queue("x")
    await world.seed(code(2))
    assert await world.conn.fetchval("SELECT group_priority FROM interlock.work_queue WHERE id = $1", entry) == 2


async def test_a_delay_is_counted_from_the_first_start(world, clock):
    def code(delay: timedelta):
        version = world.version()
        version.schedule("x", version.greet.bind(), once(after=delay))
        return version

    await world.seed(code(HOUR), clock=clock)
    clock.advance(30 * MINUTE)
    await world.seed(code(HOUR), clock=clock)
    assert (await world.manifest("x"))["planned_at"] == NOW + HOUR
    await world.set("x", planned_at=None, next_run_at=None)  # it ran
    clock.advance(timedelta(days=1))
    await world.seed(code(HOUR), clock=clock)
    assert (await world.manifest("x"))["planned_at"] is None
    await world.seed(code(2 * HOUR), clock=clock)
    assert (await world.manifest("x"))["planned_at"] == clock.now + 2 * HOUR


async def test_an_edit_plans_anew_and_sets_the_marker(world, clock):
    def code(schedule, **options):
        version = world.version()
        version.schedule("x", version.greet.bind(), schedule, **options)
        return version

    await world.seed(code(HOURLY), clock=clock)
    await world.set("x", planned_at=NOW + HOUR, next_run_at=NOW + HOUR)  # it ran at noon
    clock.advance(10 * MINUTE)
    await world.seed(code(every(hours=3)), clock=clock)
    row = await world.manifest("x")
    assert row["planned_at"] == row["next_run_at"] == NOW + 3 * HOUR
    await world.seed(code(every(hours=3), exclude=[exclude.window("14:00", "16:00")]), clock=clock)
    assert (await world.manifest("x"))["next_run_at"] == NOW + 6 * HOUR
    await world.seed(code(cron("0 2 * * *")), clock=clock)
    row = await world.manifest("x")
    assert row["planned_at"] == row["next_run_at"] == datetime(2030, 6, 5, 2, tzinfo=UTC)
    assert (row["schedule_kind"], row["schedule"]["expression"]) == ("cron", "0 2 * * *")
    await world.seed(code(None), clock=clock)
    row = await world.manifest("x")
    assert (row["schedule_kind"], row["planned_at"], row["next_run_at"]) == ("manual", None, None)


@pytest.mark.parametrize("blocker", ["queued", "active", "dead letter", "switched off", "nothing", "a manual run"])
async def test_an_edit_leaves_the_marker_of_a_blocked_manifest_empty(world, clock, blocker):
    def code(schedule):
        version = world.version()
        version.schedule("x", version.greet.bind(), schedule)
        return version

    await world.seed(code(HOURLY), clock=clock)
    await world.set("x", planned_at=NOW + HOUR, next_run_at=None)
    match blocker:
        case "queued":
            await world.queue("x")
        case "active":
            await world.execute("x")
        case "dead letter":
            await world.conn.execute(
                "INSERT INTO interlock.dead_letter (reason, kind, train, input, manifest_id, first_entry_id, group_id,"
                " priority, attempts) SELECT 'max_attempts', 'scheduled', train, input, id, 1, group_id, 0, 3"
                " FROM interlock.manifest"
            )
        case "switched off":
            await world.set("x", enabled=False)
        case "a manual run":
            await world.queue("x", "manual")
            await world.execute("x", "manual")
    await world.seed(code(cron("0 2 * * *")), clock=clock)
    row, planned = await world.manifest("x"), datetime(2030, 6, 5, 2, tzinfo=UTC)
    assert row["planned_at"] == planned
    assert row["next_run_at"] == (planned if blocker in ("nothing", "a manual run") else None)


async def test_an_edit_gives_a_manifest_that_could_not_be_written_another_chance(world, clock):
    def code(name: str):
        version = world.version()
        version.schedule("x", version.greet.bind(name), HOURLY)
        return version

    await world.seed(code("a"), clock=clock)
    await world.set("x", write_error="boom", write_failures=3, write_retry_at=NOW + HOUR, next_run_at=NOW + HOUR)
    await world.seed(code("b"), clock=clock)
    row = await world.manifest("x")
    assert (row["write_error"], row["write_failures"], row["write_retry_at"], row["next_run_at"]) == (
        None,
        0,
        None,
        NOW,
    )


async def test_a_dependent_moves_to_another_parent_and_is_due_for_what_that_one_achieved(world, clock):
    def code(parent: str):
        version = world.version()
        parents = {name: version.schedule(name, version.greet.bind(), HOURLY) for name in ("a", "b", "c")}
        parents[parent].then("x", version.greet.bind())
        return version

    await world.seed(code("a"), clock=clock)
    assert (await world.manifest("x"))["planned_at"] is None
    await world.set("b", last_success_execution_id=7)
    await world.seed(code("b"), clock=clock)
    row = await world.manifest("x")
    assert row["parent_id"] == (await world.manifest("b"))["id"]
    assert row["planned_at"] == row["next_run_at"] == NOW
    await world.seed(code("c"), clock=clock)
    row = await world.manifest("x")
    assert (row["schedule"]["parent"], row["planned_at"], row["next_run_at"]) == ("c", None, None)


async def test_a_dependent_that_waits_for_the_end_of_an_exclusion_is_let_go_when_that_is_removed(world, clock):
    def code(**options):
        version = world.version()
        version.schedule("a", version.greet.bind(), HOURLY).then("x", version.greet.bind(), **options)
        return version

    await world.seed(code(exclude=[exclude.weekdays("tue")]), clock=clock)
    await world.set("x", planned_at=NOW + 12 * HOUR, next_run_at=NOW + 12 * HOUR)  # the manager put it off
    await world.seed(code(), clock=clock)
    row = await world.manifest("x")
    assert row["planned_at"] == row["next_run_at"] == NOW


async def test_a_new_dependent_stands_for_the_success_that_its_parent_already_had(world, clock):
    code = world.version()
    code.schedule("a", code.greet.bind(), HOURLY)
    await world.seed(code, clock=clock)
    await world.set("a", last_success_execution_id=7)
    code = world.version()
    parent = code.schedule("a", code.greet.bind(), HOURLY)
    parent.then("x", code.greet.bind())
    parent.then("dormant", code.greet.bind(), dormant=True)
    await world.seed(code, clock=clock)
    assert (await world.manifest("x"))["next_run_at"] == NOW
    assert (await world.manifest("dormant"))["next_run_at"] is None


async def test_an_id_of_another_app_is_refused_and_nothing_is_written(world):
    theirs = world.version("billing")
    theirs.schedule("m", theirs.greet.bind(), HOURLY)
    await world.seed(theirs)
    before = {name: written for name, (written, _) in (await world.versions_of_rows()).items()}
    for name in ("shop", None):
        ours = world.version(name)
        ours.group("new")
        ours.schedule("a", ours.greet.bind(), HOURLY)
        ours.schedule("m", ours.greet.bind(), HOURLY, priority=3)
        with pytest.raises(OwnedByAnotherApp, match="'m' belongs to the app 'billing'"):
            await world.seed(ours)
    assert {name: written for name, (written, _) in (await world.versions_of_rows()).items()} == before


async def test_an_app_that_gets_a_name_keeps_its_manifests(world):
    for name in (None, "shop"):
        code = world.version(name)
        code.schedule("m", code.greet.bind(), HOURLY)
        await world.seed(code)
    assert (await world.manifest("m"))["app"] == "shop"


async def test_trains_are_announced_with_their_schema_and_their_group(world):
    code = world.version()

    @code.train(name="report", aliases=["summary"], group="slow")
    def report(day: int, *, loud: bool = False) -> None: ...

    await world.seed(code)
    row = await world.conn.fetchrow("SELECT * FROM interlock.train WHERE name = 'report'")
    assert (row["aliases"], row["app"], row["paused"]) == (["summary"], "shop", False)
    assert row["group_id"] == (await world.groups())["slow"]["id"]
    assert '"day"' in row["input_schema"]


async def test_a_paused_train_stays_paused_when_it_is_announced_anew(world):
    await world.seed(world.version())
    await world.conn.execute(
        "UPDATE interlock.train SET paused = true, paused_by = 'ada', last_seen_at = now() - interval '1 day'"
    )
    await world.seed(world.version())
    row = await world.conn.fetchrow("SELECT *, last_seen_at > now() - interval '1 h' AS seen FROM interlock.train")
    assert (row["paused"], row["paused_by"], row["seen"]) == (True, "ada", True)


async def test_a_chain_longer_than_a_batch_and_inputs_larger_than_one_are_written(world, monkeypatch):
    monkeypatch.setattr("interlock.store.declaration_row.MOST_ROWS", 7)
    monkeypatch.setattr("interlock.store.declaration_row.MOST_BYTES", 5000)
    code = world.version()
    ref = code.schedule("m-000", code.greet.bind("x" * 9000), HOURLY)
    for n in range(1, 40):
        ref = ref.then(f"m-{n:03}", code.greet.bind("ü" * 50 * n))
    assert (await world.seed(code)).created == 40
    depth = await world.conn.fetchval(
        "WITH RECURSIVE chain AS (SELECT id, 1 AS depth FROM interlock.manifest WHERE parent_id IS NULL UNION ALL"
        " SELECT m.id, depth + 1 FROM chain JOIN interlock.manifest m ON m.parent_id = chain.id)"
        " SELECT max(depth) FROM chain"
    )
    assert depth == 40
    assert (await world.manifest("m-039"))["input"] == {"name": "ü" * 50 * 39}


@pytest.fixture
async def slow_to_plan(world, monkeypatch):
    """Forty plans take longer than PostgreSQL lets a transaction stand still."""
    monkeypatch.setattr(write, "first_plan", lambda *_, **__: time.sleep(0.03))
    monkeypatch.setattr("interlock.store.declaration.ATTEMPTS", 1)
    code = world.version()
    code.schedule_many("m", [(n, code.greet.bind()) for n in range(40)], HOURLY)
    world.database = Database(world.dsn, StoreSettings(tick_idle_timeout=timedelta(seconds=0.8)))
    yield code
    await world.database.close()


async def test_what_is_slow_to_plan_is_written_in_parts_before_the_transaction_is_ended(
    world, slow_to_plan, monkeypatch
):
    monkeypatch.setattr("interlock.store.declaration_row.LONGEST_SILENCE", 0.05)
    assert (await world.seed(slow_to_plan)).created == 40


async def test_control_in_one_part_the_transaction_is_ended(world, slow_to_plan, monkeypatch):
    monkeypatch.setattr("interlock.store.declaration_row.LONGEST_SILENCE", 60)
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)):
        await world.seed(slow_to_plan)


async def test_the_manager_is_woken_by_what_was_planned_and_by_nothing_else(world):
    heard = []
    await world.conn.add_listener("interlock_interlock", lambda *arguments: heard.append(arguments[-1]))
    code = world.version()
    code.group("etl", priority=3)
    code.schedule("m", code.greet.bind(), HOURLY)
    await world.seed(code)
    await world.seed(code)
    await world.conn.execute("SELECT 1")
    assert sorted(heard) == ["manifest", "work"]
