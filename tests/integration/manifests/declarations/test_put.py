"""Manifests written at run time: checked like declared ones, never pruned, refused where they would do harm."""

from __future__ import annotations

import asyncio

import pytest

from interlock.errors import (
    DependencyCycle,
    InvalidInput,
    InvalidOption,
    InvalidSchedule,
    OwnedByAnotherApp,
    UnknownManifest,
    UnknownTrain,
)
from interlock.model.schedule import Dependent, cron, every

HOURLY = every(hours=1)


async def test_a_put_creates_changes_or_leaves_alone(world):
    app = world.version()
    app.declarations.freeze()
    assert await app.aput_schedule("x", app.greet.bind(), HOURLY, group="new") == "created"
    assert await app.aput_schedule("x", app.greet.bind(), HOURLY, group="new") == "unchanged"
    assert await app.aput_schedule("x", app.greet.bind(), HOURLY, group="new", priority=7) == "changed"
    row = await world.manifest("x")
    assert (row["origin"], row["declared_at"], row["priority"], row["app"]) == ("runtime", None, 7, "shop")
    assert row["next_run_at"] == row["planned_at"] is not None
    assert row["group_id"] == (await world.groups())["new"]["id"]


def test_the_blocking_twin_does_the_same(migrated):
    from interlock import Interlock

    app = Interlock(migrated, name="shop")

    @app.train
    def work() -> None: ...

    with app:
        assert app.put_schedule("x", work.bind(), cron("@daily")) == "created"
        assert app.put_schedule("x", work.bind(), cron("@daily")) == "unchanged"


async def test_a_put_hangs_below_a_parent_and_moves_to_another(world):
    app = world.version()
    a = app.schedule("a", app.greet.bind(), HOURLY)
    await world.seed(app)
    assert await app.aput_schedule("b", app.greet.bind(), parent=a) == "created"
    assert await app.aput_schedule("c", app.greet.bind(), parent="b", dormant=True) == "created"
    assert await app.aput_schedule("c", app.greet.bind(), parent="a") == "changed"
    row = await world.manifest("c")
    assert (row["schedule_kind"], row["parent_id"]) == ("dependent", (await world.manifest("a"))["id"])
    assert await app.aput_schedule("c", app.greet.bind(), HOURLY) == "changed"
    row = await world.manifest("c")
    assert (row["schedule_kind"], row["parent_id"], row["next_run_at"] is None) == ("every", None, False)


@pytest.mark.parametrize(("external_id", "parent", "ring"), [("a", "a", "a → a"), ("a", "c", "a → c → b → a")])
async def test_a_cycle_is_refused_with_its_members_named(world, external_id, parent, ring):
    app = world.version()
    app.schedule("a", app.greet.bind(), HOURLY).then("b", app.greet.bind()).then("c", app.greet.bind())
    await world.seed(app)
    with pytest.raises(DependencyCycle, match=ring):
        await app.aput_schedule(external_id, app.greet.bind(), parent=parent)
    assert (await world.manifest("a"))["parent_id"] is None


async def test_two_puts_at_once_cannot_close_a_ring_together(world):
    app = world.version()
    for name in ("a", "b"):
        await app.aput_schedule(name, app.greet.bind(), HOURLY)
    outcomes = await asyncio.gather(
        app.aput_schedule("a", app.greet.bind(), parent="b"),
        app.aput_schedule("b", app.greet.bind(), parent="a"),
        return_exceptions=True,
    )
    assert sorted(str(type(outcome).__name__) for outcome in outcomes) == ["DependencyCycle", "str"]


async def test_an_unknown_parent_is_refused_and_nothing_is_written(world):
    app = world.version()
    with pytest.raises(UnknownManifest, match="nobody"):
        await app.aput_schedule("x", app.greet.bind(), parent="nobody", group="fresh")
    with pytest.raises(DependencyCycle):
        await app.aput_schedule("x", app.greet.bind(), parent="x")
    assert (await world.manifests(), set(await world.groups())) == ([], {"default"})


async def test_a_manifest_of_another_app_is_refused(world):
    theirs, ours = world.version("billing"), world.version("shop")
    await theirs.aput_schedule("x", theirs.greet.bind(), HOURLY)
    with pytest.raises(OwnedByAnotherApp):
        await ours.aput_schedule("x", ours.greet.bind(), HOURLY)
    assert await ours.aput_schedule("y", ours.greet.bind(), parent="x") == "created"


async def test_bad_input_is_refused_before_anything_is_sent(world):
    app, other = world.version(), world.version()
    for error, call in {
        InvalidSchedule: lambda: app.aput_schedule("x", app.greet.bind(), Dependent("y")),
        InvalidOption: lambda: app.aput_schedule("", app.greet.bind(), HOURLY),
        UnknownTrain: lambda: app.aput_schedule("x", other.greet.bind(), HOURLY),
        InvalidInput: lambda: app.aput_schedule("x", app.greet.bind(3), HOURLY),
    }.items():
        with pytest.raises(error):
            await call()
    assert await world.manifests() == []


async def test_a_declared_manifest_may_be_put_and_the_next_deploy_takes_it_back(world):
    app = world.version()
    app.schedule("x", app.greet.bind(), HOURLY, priority=1)
    await world.seed(app)
    assert await app.aput_schedule("x", app.greet.bind(), HOURLY, priority=2) == "changed"
    assert (await world.manifest("x"))["origin"] == "runtime"
    await world.seed(app)
    row = await world.manifest("x")
    assert (row["origin"], row["priority"]) == ("declared", 1)
