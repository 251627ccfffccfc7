"""An execution run again is linked both ways, and its edited input is checked like any other."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest

from interlock import Backoff, Interlock
from interlock.errors import InvalidInput, InvalidOption, UnknownTrain, UnknownWork
from interlock.model.lifecycle import ExecutionState

SCHEMA = {"properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@pytest.fixture
async def announced(yard) -> None:
    await yard.conn.execute(
        "INSERT INTO interlock.train (name, input_schema) VALUES ('work', $1::text::jsonb)", json.dumps(SCHEMA)
    )


async def test_a_second_run_is_like_the_first_and_linked_both_ways(app, yard, ends):
    run = await yard.dispatch(input={"n": 1}, max_attempts=7, limit=9)
    await ends(run)
    entry = await app.arerun(run, actor="ada", note="again")
    [queued] = await yard.queued()
    assert (queued["id"], queued["kind"], queued["attempt"], queued["max_attempts"]) == (entry, "adhoc", 1, 7)
    assert (json.loads(queued["input"]), queued["previous_execution_id"], queued["timeout"].seconds) == (
        {"n": 1},
        run,
        9,
    )
    found = await app.views.execution(run)
    assert [(one.action, one.actor, one.entry_id) for one in found.reruns] == [("rerun", "ada", entry)]


async def test_a_run_of_a_manifest_becomes_a_manual_one_that_blocks_nothing(app, yard, ends):
    manifest = await yard.manifest("m")
    run = await yard.dispatch(kind="scheduled", manifest=manifest, fire_key="f")
    await ends(run)
    await app.arerun(run)
    [queued] = await yard.queued()
    assert (queued["kind"], queued["manifest_id"], queued["fire_key"]) == ("manual", manifest, None)
    assert await yard.marker(manifest)


async def test_when_its_manifest_is_gone_it_is_like_any_other_work(app, yard, ends):
    manifest = await yard.manifest("m")
    run = await yard.dispatch(kind="scheduled", manifest=manifest, fire_key="f")
    await ends(run)
    await yard.conn.execute("DELETE FROM interlock.manifest")
    await app.arerun(run)
    [queued] = await yard.queued()
    assert (queued["kind"], queued["manifest_id"]) == ("adhoc", None)


@pytest.mark.usefixtures("announced")
async def test_an_edited_input_is_checked_by_the_schema_that_servers_announced(app, yard, ends):
    run = await yard.dispatch(input={"n": 1})
    await ends(run)
    for wrong in ({"n": "x"}, {}, {"n": 1, "m": 2}):
        with pytest.raises(InvalidInput):
            await app.arerun(run, input=wrong)
    assert await yard.queued() == []
    await app.arerun(run, input={"n": 2})
    [queued] = await yard.queued()
    assert json.loads(queued["input"]) == {"n": 2}
    [act] = (await app.views.audit(action="rerun")).lines
    assert (act.before, act.after["input"]) == ({"input": {"n": 1}}, {"n": 2})


async def test_what_nobody_knows_cannot_be_edited_or_enqueued(app, yard, ends):
    run = await yard.dispatch()
    await ends(run)
    with pytest.raises(UnknownTrain, match="'work'"):
        await app.arerun(run, input={})
    with pytest.raises(UnknownTrain, match="'nothing'"):
        await app.commands.enqueue("nothing", {})
    with pytest.raises(UnknownWork, match="4711"):
        await app.arerun(4711)


async def test_a_key_that_work_under_the_trains_older_name_holds_is_its_own(app, yard, announced):
    first = await app.commands.enqueue("work", {"n": 1}, key="k")
    await yard.conn.execute("UPDATE interlock.work_queue SET train = 'before'")
    await yard.conn.execute("UPDATE interlock.train SET aliases = '{before}'")
    assert await app.commands.enqueue("work", {"n": 1}, key="k") == (first.entry_id, False)


@pytest.mark.parametrize("option", ["key", "group"])
@pytest.mark.parametrize("found", ["", "a\0b", "x" * 5000])
async def test_what_is_no_name_is_refused_as_it_is_in_code(app, yard, announced, option, found):
    with pytest.raises(InvalidOption):
        await app.commands.enqueue("work", {"n": 1}, **{option: found})


@pytest.mark.usefixtures("announced")
async def test_work_enqueued_by_name_holds_its_key_once(app, yard):
    first = await app.commands.enqueue("work", {"n": 1}, key="k", priority=7)
    assert first.is_new
    assert await app.commands.enqueue("work", {"n": 1}, key="k") == (first.entry_id, False)
    assert [act.target for act in (await app.views.audit(action="enqueue")).lines] == ["work"]
    [queued] = await yard.queued()
    assert (queued["key"], queued["priority"], queued["kind"]) == ("k", 7, "adhoc")


async def test_a_failed_lineage_is_shown_with_all_its_attempts(app, yard, ends, dies):
    run = await yard.dispatch(attempt=2)
    await ends(run, ExecutionState.FAILED, "error")
    found = await app.views.execution(run)
    assert [attempt.id for attempt in found.attempts] == [run]
    [retry] = found.waiting
    assert (retry.attempt, retry.ready) == (3, False)
    letter = await dies()
    dead = await app.views.dead_letter(letter)
    shown = await app.views.execution(dead.letter.execution_id)
    assert [one.id for one in shown.dead_letters] == [letter]
    entry = await app.dead_letters.arequeue(letter)
    shown = await app.views.execution(dead.letter.execution_id)
    assert [(one.action, one.entry_id) for one in shown.reruns] == [("requeue", entry)]


async def test_the_blocking_twins_do_the_same(app, yard, ends):
    run = await yard.dispatch()
    await ends(run)
    assert await asyncio.to_thread(app.rerun, run)
    assert (await asyncio.to_thread(app.set_group, "default", priority=4)).before == {"priority": 0}


async def test_work_queued_without_the_code_of_its_train_still_follows_its_policy(app, yard, migrated):
    """Servers announce what a train says of its work, so that a console without the code does not overrule it."""
    elsewhere = Interlock(migrated)
    retry = Backoff(timedelta(seconds=7), factor=3.0, max_delay=timedelta(minutes=9))

    @elsewhere.train(max_attempts=9, timeout=timedelta(seconds=11), priority=5, retry=retry)
    def pack(n: int) -> None: ...

    elsewhere.schedule("m", pack.bind(1))
    async with elsewhere.running(["timers"]):
        await app.commands.enqueue("pack", {"n": 1})
        await app.atrigger("m")
    for entry in await yard.queued():
        assert (entry["max_attempts"], entry["priority"], entry["retry_backoff"]) == (9, 5, 3.0)
        assert (entry["retry_delay"], entry["max_retry_delay"], entry["timeout"]) == (
            timedelta(seconds=7), timedelta(minutes=9), timedelta(seconds=11),
        )  # fmt: skip
    assert len(await yard.queued()) == 2
