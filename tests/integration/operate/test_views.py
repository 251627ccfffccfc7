"""Lists by pages that neither lose nor repeat a line, counts that end, and no payload in any list."""

from __future__ import annotations

from dataclasses import fields

import pytest

from interlock.errors import NotPermitted, UnknownGroup, UnknownManifest, UnknownWork
from interlock.model import reading
from interlock.model.act import VIEWER, Actor
from interlock.store import reading as store


async def test_pages_by_key_show_every_line_once(app, yard):
    runs = [await yard.dispatch() for _ in range(7)]
    seen: list[int] = []
    before = None
    while True:
        page = await app.views.executions(limit=3, before=before)
        seen += [line.id for line in page.lines]
        if page.next is None:
            break
        before = int(page.next)
    assert seen == runs[::-1]
    assert page.total is None


async def test_a_count_ends_at_its_limit(app, yard, monkeypatch):
    for _ in range(5):
        await yard.dispatch()
    page = await app.views.executions(limit=2, counted=True)
    assert (page.total, page.is_counted) == (5, True)
    monkeypatch.setattr(store, "COUNTED_UP_TO", 3)
    monkeypatch.setattr(reading, "COUNTED_UP_TO", 3)
    page = await app.views.executions(limit=2, counted=True)
    assert (page.total, page.is_counted) == (3, False)
    assert (await app.views.dead_letters(counted=True)).total == 0


@pytest.mark.parametrize("kind", [reading.ManifestLine, reading.EntryLine, reading.ExecutionLine])
def test_no_line_carries_a_payload_or_a_traceback(kind):
    assert {each.name for each in fields(kind)}.isdisjoint({"input", "output", "traceback", "error_message"})


async def test_manifests_are_found_by_group_train_switch_and_a_part_of_their_name(app, yard):
    await yard.manifest("north-a")
    await yard.manifest("north-b", enabled=False)
    await yard.manifest("south", train="sell")

    async def names(**wanted) -> list[str]:
        return [line.external_id for line in (await app.views.manifests(**wanted)).lines]

    assert await names(search="ORTH") == ["north-a", "north-b"]
    assert await names(enabled=False) == ["north-b"]
    assert await names(train="sell") == ["south"]
    assert await names(group="nothing") == []
    assert await names(after="north-a", limit=1) == ["north-b"]


async def test_a_manifest_shows_what_waits_runs_and_is_dead(app, yard, dies):
    manifest = await yard.manifest("m")
    child = await yard.manifest("child", kind="dependent", parent=manifest, planned=False)
    run = await yard.dispatch(kind="manual", manifest=manifest)
    entry = await app.atrigger("m")
    letter = await dies(kind="scheduled", manifest=manifest, fire_key="f")
    found = await app.views.manifest("m")
    assert (found.children, found.open_dead_letter_id) == (["child"], letter)
    assert [line.id for line in found.queued] == [entry]
    assert run in [line.id for line in found.executions]
    [line, other] = (await app.views.manifests()).lines[::-1]
    assert (line.external_id, line.queued, line.active, line.dead_lettered) == ("m", True, True, True)
    assert (other.parent, other.queued, child) == ("m", False, child)


async def test_groups_show_how_much_of_them_is_used(app, yard):
    await yard.manifest("m")
    await yard.dispatch()
    await app.atrigger("m")
    [group] = await app.views.groups()
    assert (group.name, group.active, group.ready, group.later, group.manifests) == ("default", 1, 1, 0, 1)
    with pytest.raises(UnknownGroup, match="default"):
        await app.views.group("nothing")


async def test_what_does_not_exist_is_named(app):
    for call, error in (
        (app.views.manifest("nothing"), UnknownManifest),
        (app.views.plans("nothing"), UnknownManifest),
        (app.views.execution(4711), UnknownWork),
        (app.views.entry(4711), UnknownWork),
    ):
        with pytest.raises(error):
            await call


async def test_who_may_not_look_sees_nothing(app):
    assert app.views.seen_by(Actor("ada", VIEWER, "web"))
    with pytest.raises(NotPermitted, match="view"):
        app.views.seen_by(Actor("eve", frozenset(), "web"))
