"""Every command that changed something leaves a row that says who, what and why, in the same transaction."""

from __future__ import annotations

import json

import pytest

from interlock.errors import AlreadyResolved, NotEnded, NothingDeclares, UnknownGroup, UnknownManifest
from interlock.model.act import ADMIN, Actor
from interlock.model.dead_letter import DeadLetterFilter
from interlock.observe.events.operate import Acted
from interlock.store.audit import Audit

ADA = Actor("ada", ADMIN, "web")
ROW = "SELECT actor, via, action, target_kind, target, before, after, note FROM interlock.audit ORDER BY id"


class World:
    """Something that each command can change."""

    def __init__(self, app, yard, dies, ends) -> None:
        self.app, self.yard, self._dies, self._ends = app, yard, dies, ends
        self.commands = app.commands.by(ADA, note="because")

    async def prepare(self) -> None:
        self.manifest = await self.yard.manifest("m")
        self.off = await self.yard.manifest("off", enabled=False)
        self.letter, self.other = await self._dies(), await self._dies()
        self.ended = await self.yard.dispatch(input={"n": 1})
        await self._ends(self.ended)
        self.run = await self.yard.dispatch(kind="manual", manifest=self.manifest)
        self.second = await self.yard.dispatch()
        self.entry = (await self.yard.entry_of(self.second))["id"]
        await self.yard.conn.execute("INSERT INTO interlock.train (name) VALUES ('work')")
        await self.yard.conn.execute("INSERT INTO interlock.train (name, paused) VALUES ('held', true)")
        await self.yard.conn.execute(
            "UPDATE interlock.manifest SET app = 'shop', origin = 'declared', declared_at = now() WHERE id = $1",
            self.off,
        )
        self.app.schedule("declared", self.app.train(_nothing).bind())

    async def audit(self) -> list[dict]:
        rows = [dict(row) for row in await self.yard.conn.fetch(ROW)]
        return [row | {side: row[side] and json.loads(row[side]) for side in ("before", "after")} for row in rows]

    async def standing(self) -> list:
        """All that a command could change."""
        tables = ("manifest", "manifest_group", "work_queue", "execution", "dead_letter", "train", "audit")
        return [await self.yard.conn.fetch(f"SELECT * FROM interlock.{table} ORDER BY 1") for table in tables]


def _nothing() -> None:
    """A train."""


@pytest.fixture
async def world(app, yard, dies, ends) -> World:
    world = World(app, yard, dies, ends)
    await world.prepare()
    return world


COMMANDS = {
    "trigger": (lambda _, c: c.trigger("m"), "manifest", lambda _: "m"),
    "enable": (lambda _, c: c.enable("off"), "manifest", lambda _: "off"),
    "disable": (lambda _, c: c.disable("m"), "manifest", lambda _: "m"),
    "pause": (lambda _, c: c.pause("work"), "train", lambda _: "work"),
    "pause all": (lambda _, c: c.pause(), "train", lambda _: "*"),
    "resume": (lambda _, c: c.resume("held"), "train", lambda _: "held"),
    "cancel manifest": (lambda _, c: c.cancel_manifest("m"), "manifest", lambda _: "m"),
    "cancel group": (lambda _, c: c.cancel_group("default"), "group", lambda _: "default"),
    "cancel execution": (lambda w, c: c.cancel_execution(w.second), "execution", lambda w: w.second),
    "cancel entry": (lambda w, c: c.cancel_entry(w.entry), "entry", lambda w: w.entry),
    "set": (lambda _, c: c.set_group("default", max_active_jobs=5), "group", lambda _: "default"),
    "requeue": (lambda w, c: c.requeue(w.letter), "dead_letter", lambda w: w.letter),
    "acknowledge": (lambda w, c: c.acknowledge(w.letter), "dead_letter", lambda w: w.letter),
    "requeue many": (lambda w, c: c.requeue_many(DeadLetterFilter(ids=[w.letter])), "dead_letter", lambda w: w.letter),
    "acknowledge many": (
        lambda w, c: c.acknowledge_many(DeadLetterFilter(ids=[w.letter])),
        "dead_letter",
        lambda w: w.letter,
    ),
    "rerun": (lambda w, c: c.rerun(w.ended), "execution", lambda w: w.ended),
    "enqueue": (lambda _, c: c.enqueue("work", {"n": 2}), "train", lambda _: "work"),
    "prune": (lambda _, c: c.prune(), "manifest", lambda _: "off"),
}
every_command = pytest.mark.parametrize("name", COMMANDS)


@every_command
async def test_a_command_leaves_one_row_with_actor_reason_and_target(world, name):
    command, kind, target = COMMANDS[name]
    said: list[Acted] = []
    world.app.events.subscribe(said.append, (Acted,))
    await command(world, world.commands)
    [row] = await world.audit()
    assert (row["actor"], row["via"], row["note"]) == ("ada", "web", "because")
    assert (row["action"], row["target_kind"], row["target"]) == (name.split()[0], kind, str(target(world)))
    assert row["before"] or row["after"]
    assert [(event.actor, event.action, event.target) for event in said] == [("ada", row["action"], row["target"])]


@every_command
async def test_a_dry_run_answers_and_changes_nothing(world, name):
    command, _, _ = COMMANDS[name]
    before = await world.standing()
    await command(world, world.app.commands.by(ADA, dry_run=True))
    assert await world.standing() == before


@every_command
async def test_without_its_row_a_command_changes_nothing_either(world, name, monkeypatch):
    """One transaction: where the audit cannot be written, nothing is."""

    async def full(*_, **__) -> None:
        raise OSError("no space left for the audit")

    command, _, _ = COMMANDS[name]
    before = await world.standing()
    monkeypatch.setattr(Audit, "write", full)
    with pytest.raises(OSError, match="no space"):
        await command(world, world.commands)
    assert await world.standing() == before


@pytest.mark.parametrize("name", ["enable", "disable", "pause", "resume", "set", "cancel manifest", "prune"])
async def test_a_second_time_changes_nothing_and_leaves_no_second_row(world, name):
    command, _, _ = COMMANDS[name]
    await command(world, world.commands)
    standing = await world.standing()
    await command(world, world.commands)
    after = await world.standing()
    assert after[-1] == standing[-1]
    assert len(await world.audit()) == 1


async def test_what_changed_is_kept_with_what_it_was(world):
    await world.commands.set_group("default", max_active_jobs=5, priority=3, enabled=True)
    await world.commands.set_group("default", max_active_jobs=None)
    first, second = await world.audit()
    assert (first["before"], first["after"]) == (
        {"max_active_jobs": None, "priority": 0},
        {"max_active_jobs": 5, "priority": 3},
    )
    assert (second["before"], second["after"]) == ({"max_active_jobs": 5}, {"max_active_jobs": None})


async def test_a_new_priority_of_a_group_counts_for_what_waits(world):
    await world.commands.enqueue("work", {})
    await world.commands.set_group("default", priority=9)
    assert {entry["group_priority"] for entry in await world.yard.queued()} == {9}


async def test_calls_of_code_are_in_the_audit_as_code(world):
    await world.app.adisable("m")
    await world.app.aenable("m", actor="cron of ops", note="after the window")
    assert [(row["actor"], row["via"], row["note"]) for row in await world.audit()] == [
        ("code", "code", None),
        ("cron of ops", "code", "after the window"),
    ]


async def test_what_is_refused_leaves_no_row(world):
    refusals = [
        (world.commands.disable("nothing"), UnknownManifest),
        (world.commands.set_group("nothing", priority=1), UnknownGroup),
        (world.commands.rerun(world.run), NotEnded),
    ]
    for call, error in refusals:
        with pytest.raises(error):
            await call
    await world.commands.acknowledge(world.letter)
    with pytest.raises(AlreadyResolved, match="by ada"):
        await world.commands.requeue(world.letter)
    assert [row["action"] for row in await world.audit()] == ["acknowledge"]


async def test_nothing_is_pruned_where_nobody_says_what_is_declared(app, yard):
    manifest = await yard.manifest("m")
    await yard.conn.execute(
        "UPDATE interlock.manifest SET app = 'shop', origin = 'declared', declared_at = now() WHERE id = $1", manifest
    )
    with pytest.raises(NothingDeclares, match="everything would go"):
        await app.commands.prune()
    assert await yard.conn.fetchval("SELECT count(*) FROM interlock.manifest") == 1
