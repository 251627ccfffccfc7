"""Pruning: what no live server declares any more goes; whatever might still be wanted stays."""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock.model.schedule import every
from interlock.observe.events.manifest import ManifestPruned, ManifestsSeeded

HOURLY = every(hours=1)


def declaring(world, *names: str, app: str | None = "shop"):
    version = world.version(app)
    for name in names:
        version.schedule(name, version.greet.bind(), HOURLY)
    return version


async def test_a_deploy_removes_what_it_no_longer_declares_once_the_old_servers_are_gone(world):
    old = await world.start(declaring(world, "kept", "dropped"))
    newer = declaring(world, "kept", "added")
    server = await world.register()
    seeding = world.seeding(newer, server)
    assert (await seeding.seed()).pruned == ()
    assert await world.manifests() == ["added", "dropped", "kept"]
    await world.end(old)
    await seeding.prune()
    assert await world.manifests() == ["added", "kept"]
    assert [event.external_id for event in world.events if isinstance(event, ManifestPruned)] == ["dropped"]


async def test_an_old_server_that_starts_late_does_not_prune_what_a_newer_one_declares(world):
    await world.start(declaring(world, "new"))
    late = await world.register()
    assert (await world.seeding(declaring(world, "old"), late).seed()).pruned == ()
    assert await world.manifests() == ["new", "old"]


async def test_control_with_the_newer_server_gone_it_would(world):
    newer = await world.start(declaring(world, "new"))
    await world.end(newer)
    late = await world.register()
    assert (await world.seeding(declaring(world, "old"), late).seed()).pruned == ("new",)


async def test_a_server_that_has_yet_to_say_what_it_declares_holds_all_pruning_back(world):
    first = await world.start(declaring(world, "a", "b"))
    starting = await world.register()
    second = world.seeding(declaring(world, "a"), await world.register())
    await world.end(first)
    assert (await second.seed()).pruned == ()
    await world.end(starting)
    assert await second.prune() == ("b",)


async def test_a_server_that_was_marked_lost_brings_back_what_was_pruned_meanwhile(world):
    server = [await world.register()]
    lonely = world.seeding(declaring(world, "mine"))
    lonely._server = lambda: server[0]
    await lonely.seed()
    await world.conn.execute("UPDATE interlock.server SET state = 'lost' WHERE id = $1", server[0])
    assert (await world.seeding(declaring(world, "other"), await world.register()).seed()).pruned == ("mine",)
    server[0] = await world.register()
    await lonely.tick()
    assert await world.manifests() == ["mine", "other"]


async def test_a_server_that_was_marked_lost_leaves_what_newer_code_has_written_since(world):
    """It will soon be gone: nobody would write the words of the newer code again."""

    def code(minutes: int, cap: int, **train):
        version = world.version()
        group = version.group("etl", max_active_jobs=cap)
        version.train(lambda: None, name="t", **train)
        version.schedule("m", version.greet.bind(), every(minutes=minutes), group=group)
        return version

    async def stored() -> tuple:
        row, groups = await world.manifest("m"), await world.groups()
        priority = await world.conn.fetchval("SELECT priority FROM interlock.train WHERE name = 't'")
        return row["schedule"]["interval_us"], row["declared"], groups["etl"]["max_active_jobs"], priority

    server = [await world.register()]
    old = world.seeding(code(1, 1, priority=1))
    old._server = lambda: server[0]
    await old.seed()
    await world.start(code(2, 2, priority=2))
    newer = await stored()
    server[0] = await world.register()
    await old.tick()
    assert await stored() == newer
    assert newer[0] == 120_000_000
    assert newer[2:] == (2, 2)


async def test_a_group_that_was_forgotten_meanwhile_comes_back_as_it_was_declared(world):
    version, server = declaring(world, "mine"), [await world.register()]
    version.group("etl", max_active_jobs=3)
    lonely = world.seeding(version)
    lonely._server = lambda: server[0]
    await lonely.seed()
    await world.conn.execute("DELETE FROM interlock.manifest_group WHERE name = 'etl'")
    server[0] = await world.register()
    await lonely.tick()
    assert (await world.groups())["etl"]["max_active_jobs"] == 3


@pytest.mark.parametrize("kind", ["scheduled", "manual"])
@pytest.mark.parametrize("busy", ["queued", "active"])
async def test_what_is_queued_or_runs_stays_until_it_ended(world, busy, kind):
    await world.end(await world.start(declaring(world, "a")))
    if busy == "queued":
        entry = await world.queue("a", kind)
        ending = ("UPDATE interlock.work_queue SET state = 'cancelled', left_at = now() WHERE id = $1", entry)
    else:
        execution = await world.execute("a", kind)
        ending = ("UPDATE interlock.execution SET state = 'cancelled', ended_at = now() WHERE id = $1", execution)
    seeding = world.seeding(declaring(world), await world.register())
    assert (await seeding.seed()).pruned == ()
    await world.conn.execute(*ending)
    assert await seeding.prune() == ("a",)


async def test_parents_and_children_go_together_and_a_parent_stays_while_one_of_its_children_must(world):
    version = world.version()
    for root in ("a", "b"):
        ref = version.schedule(root, version.greet.bind(), HOURLY)
        for depth in range(3):
            ref = ref.then(f"{root}-{depth}", version.greet.bind(), dormant=depth == 2)
    await world.end(await world.start(version))
    await world.queue("b-1")
    seeded = await world.seeding(declaring(world), await world.register()).seed()
    assert sorted(seeded.pruned) == ["a", "a-0", "a-1", "a-2", "b-2"]
    assert await world.manifests() == ["b", "b-0", "b-1"]


async def test_a_manifest_that_hangs_below_and_was_written_at_run_time_keeps_its_parent(world):
    version = declaring(world, "a", "c")
    await world.end(await world.start(version))
    assert await version.aput_schedule("b", version.greet.bind(), parent="a") == "created"
    assert (await world.seeding(declaring(world), await world.register()).seed()).pruned == ("c",)
    assert await world.manifests() == ["a", "b"]


async def test_only_rows_of_the_own_app_that_code_declared_are_pruned(world):
    await world.seed(declaring(world, "theirs", app="billing"))
    await world.seed(declaring(world, "nobodys", app=None))
    version = declaring(world, "ours")
    await world.seed(version)
    await version.aput_schedule("runtime", version.greet.bind())
    assert (await world.seeding(declaring(world), await world.register()).seed()).pruned == ("ours",)
    assert await world.manifests() == ["nobodys", "runtime", "theirs"]


async def test_an_app_without_a_name_never_prunes(world):
    await world.seed(declaring(world, "a", app=None))
    seeding = world.seeding(declaring(world, app=None), await world.register(None))
    await seeding.seed()
    await seeding.tick()
    assert await world.manifests() == ["a"]


async def test_pruning_can_be_switched_off(world):
    await world.end(await world.start(declaring(world, "a")))
    seeding = world.seeding(declaring(world), await world.register(), prune=False)
    assert (await seeding.seed()).pruned == ()
    await seeding.tick()
    assert await world.manifests() == ["a"]


async def test_of_many_the_stale_ones_go(world):
    def code(*tables: str):
        version = world.version()
        many = version.schedule_many("sync", [(table, version.greet.bind(table)) for table in tables], HOURLY)
        many.then_many("check", [(table, version.greet.bind(table)) for table in tables])
        return version

    await world.end(await world.start(code("a", "b", "c")))
    await world.start(code("b", "d"))
    assert await world.manifests() == ["check-b", "check-d", "sync-b", "sync-d"]
    assert [event.pruned for event in world.events if isinstance(event, ManifestsSeeded)] == [0, 4]


async def test_a_group_goes_when_nothing_and_nobody_uses_it(world):
    version = world.version()
    version.group("declared")
    version.schedule("a", version.greet.bind(), HOURLY, group="of a manifest")
    version.train(lambda: None, name="t", group="of a train")
    first = await world.start(version)
    await world.conn.execute("INSERT INTO interlock.manifest_group (name) VALUES ('unused')")
    await world.seeding(version, first).seed()
    assert set(await world.groups()) == {"default", "declared", "of a manifest", "of a train"}
    await world.end(first)
    await world.conn.execute("UPDATE interlock.train SET last_seen_at = now() - interval '31 days'")
    later = world.seeding(world.version(), await world.register())
    await later.seed()
    await later.prune()
    assert set(await world.groups()) == {"default"}


async def test_a_train_that_a_live_server_knows_is_not_forgotten(world):
    version = world.version()
    await world.start(version)
    await world.conn.execute("UPDATE interlock.train SET last_seen_at = now() - interval '31 days'")
    await world.conn.execute("UPDATE interlock.server SET trains = '{greet}'")
    seeding = world.seeding(world.version("other"), None)
    await seeding.prune()
    assert await world.conn.fetchval("SELECT count(*) FROM interlock.train") == 1
    await world.conn.execute("UPDATE interlock.server SET trains = '{}'")
    await seeding.prune()
    assert await world.conn.fetchval("SELECT count(*) FROM interlock.train") == 0


async def test_a_server_forgets_the_declarations_of_servers_that_ended(world):
    for _ in range(3):
        await world.end(await world.start(declaring(world, "a")))
    last = await world.start(declaring(world, "a"))
    assert [row[0] for row in await world.conn.fetch("SELECT server_id FROM interlock.declaration")] == [last]


async def test_a_running_server_prunes_at_its_interval_and_not_at_every_look(world):
    old, server = await world.start(declaring(world, "a", "b")), await world.register()
    patient = world.seeding(declaring(world, "b"), server)
    hasty = world.seeding(declaring(world, "b"), server, interval=timedelta(0))
    for seeding in (patient, hasty):
        assert await seeding.tick() <= timedelta(seconds=2)
    await world.end(old)
    await patient.tick()
    assert await world.manifests() == ["a", "b"]
    await hasty.tick()
    assert await world.manifests() == ["b"]
