"""Dead letters resolved many at a time: by filter, in batches, once each however many people do it."""

from __future__ import annotations

import asyncio

import pytest

from interlock.errors import UnknownDeadLetter
from interlock.model.act import ADMIN, Actor
from interlock.model.dead_letter import DeadLetterFilter
from interlock.operate import resolve
from interlock.store import sql
from interlock.store.dead_letter import DeadLetters

ADA = Actor("ada", ADMIN, "code")


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (DeadLetterFilter(), [0, 1, 2, 3]),
        (DeadLetterFilter(train="sell"), [1]),
        (DeadLetterFilter(failure="timeout"), [2]),
        (DeadLetterFilter(manifest="m"), [3]),
        (DeadLetterFilter(group="default", train="work"), [0, 2, 3]),
        (DeadLetterFilter(group="nothing"), []),
    ],
)
async def test_a_filter_chooses(app, yard, dies, wanted, expected):
    manifest = await yard.manifest("m")
    letters = [
        await dies(),
        await dies("sell"),
        await dies(failure="timeout"),
        await dies(kind="scheduled", manifest=manifest, fire_key="f"),
    ]
    resolved = await app.commands.requeue_many(wanted)
    assert list(resolved.entries) == [letters[place] for place in expected]
    assert [entry["id"] for entry in await yard.queued()] == list(resolved.entries.values())


async def test_a_long_list_is_resolved_in_batches_and_each_has_its_row(app, yard, dies, monkeypatch):
    monkeypatch.setattr(resolve, "BATCH", 2)
    letters = [await dies() for _ in range(5)]
    resolved = await app.dead_letters.aacknowledge_all(note="known", actor="ada")
    assert list(resolved.entries) == letters
    assert await yard.conn.fetchval("SELECT count(*) FROM interlock.audit WHERE note = 'known'") == 5
    assert (await app.dead_letters.aacknowledge_all()).entries == {}


@pytest.mark.parametrize("failure", [OSError, asyncio.CancelledError])
async def test_what_stops_between_two_batches_says_how_many_were_done(app, yard, dies, monkeypatch, failure):
    monkeypatch.setattr(resolve, "BATCH", 2)
    [await dies() for _ in range(5)]
    choose = DeadLetters.choose

    async def choose_but_not_the_last(self, *args, after, **options):
        found = await choose(self, *args, after=after, **options)
        if len(found) < 2:
            raise failure
        return found

    monkeypatch.setattr(DeadLetters, "choose", choose_but_not_the_last)
    with pytest.raises(failure) as stopped:
        await app.commands.by(ADA, dry_run=True).requeue_many(DeadLetterFilter())
    assert not hasattr(stopped.value, "__notes__")
    with pytest.raises(failure) as stopped:
        await app.commands.requeue_many(DeadLetterFilter())
    told = "4 dead letters were requeued before it stopped, and stay so; begin again for the rest"
    assert stopped.value.__notes__ == [told]
    assert len(await yard.queued()) == 4


async def test_of_many_who_requeue_all_each_letter_is_queued_once(app, yard, dies):
    letters = [await dies() for _ in range(6)]
    answers = await asyncio.gather(*(app.commands.requeue_many(DeadLetterFilter()) for _ in range(4)))
    assert sorted(letter for answer in answers for letter in answer.entries) == letters
    assert len(await yard.queued()) == len(letters)


OPEN = "and d.state = 'awaiting_intervention'"


@pytest.fixture
def both_choose_first(monkeypatch):
    """Two commands have chosen the same letters before either resolves one."""
    chosen, choose = asyncio.Barrier(2), DeadLetters.choose

    async def choose_and_wait(self, *args, **options):
        found = await choose(self, *args, **options)
        await asyncio.wait_for(chosen.wait(), 60)
        return found

    monkeypatch.setattr(DeadLetters, "choose", choose_and_wait)


async def test_of_two_who_chose_the_same_letters_one_queues_each(app, yard, dies, both_choose_first):
    letters = [await dies() for _ in range(3)]
    answers = await asyncio.gather(*(app.commands.requeue_many(DeadLetterFilter()) for _ in range(2)))
    assert sorted(letter for answer in answers for letter in answer.entries) == letters
    assert len(await yard.queued()) == len(letters)


async def test_control_without_the_guard_by_state_two_queue_the_same_letters_twice(
    app, yard, dies, both_choose_first, monkeypatch
):
    compiled = sql._compiled

    def unguarded(file: str, schema: str) -> sql.Statement:
        if file != "dead_letter/requeue":
            return compiled(file, schema)
        text = sql.source_of(file)
        assert text.count(OPEN) == 2
        return sql.compile_statement(file, text.replace(OPEN, ""), schema)

    letters = [await dies() for _ in range(3)]
    monkeypatch.setattr(sql, "_compiled", unguarded)
    await asyncio.gather(*(app.commands.requeue_many(DeadLetterFilter()) for _ in range(2)))
    assert len(await yard.queued()) == 2 * len(letters)


async def test_of_several_ids_those_resolved_before_are_skipped_and_an_unknown_one_stops_all(app, yard, dies):
    first, second = await dies(), await dies()
    await app.dead_letters.aacknowledge(first)
    with pytest.raises(UnknownDeadLetter, match="4711"):
        await app.commands.requeue_many(DeadLetterFilter(ids=[second, 4711]))
    assert await yard.queued() == []
    resolved = await app.commands.requeue_many(DeadLetterFilter(ids=[first, second]))
    assert (list(resolved.entries), resolved.skipped) == ([second], (first,))


async def test_a_requeue_frees_the_manifests_of_all(app, yard, dies):
    manifests = [await yard.manifest(name) for name in "abc"]
    for manifest in manifests:
        await dies(kind="scheduled", manifest=manifest, fire_key="f")
    await app.dead_letters.aacknowledge_all()
    assert [await yard.marker(manifest) for manifest in manifests] == [True, True, True]


async def test_the_blocking_twins_do_the_same(app, dies):
    first, second = await dies("a"), await dies("b")
    assert list((await asyncio.to_thread(app.dead_letters.requeue_all, train="a")).entries) == [first]
    assert list((await asyncio.to_thread(app.dead_letters.acknowledge_all)).entries) == [second]
