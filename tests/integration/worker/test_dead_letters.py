"""Dead letters: of two who resolve one at once, one wins; the work starts anew and is linked back."""

from __future__ import annotations

import asyncio

import pytest

from interlock.errors import AlreadyResolved, UnknownDeadLetter
from interlock.model.lifecycle import ExecutionState
from interlock.model.outcome import Ending


@pytest.fixture
async def desk(works):
    yield works.app.dead_letters
    await works.app.aclose()


@pytest.fixture
def died(door, executions, yard):
    async def die(*, kind: str = "adhoc", manifest: int | None = None) -> int:
        fire_key = "f" if kind == "scheduled" else None
        run = await yard.dispatch(attempt=3, kind=kind, manifest=manifest, fire_key=fire_key, input={"n": 1})
        token = await yard.claimed(run)
        async with door.transaction() as conn:
            ending = Ending(run, token, ExecutionState.FAILED, failure="error", error_message="no")
            [ended] = await executions.end(conn, [ending], now=None)
        return ended.dead_letter_id

    return die


async def test_a_requeue_starts_the_work_anew_and_is_linked_both_ways(desk, died, yard):
    letter = await died()
    entry = await desk.arequeue(letter, actor="ada")
    [queued] = await yard.queued()
    assert (queued["id"], queued["kind"], queued["attempt"], queued["dead_letter_id"]) == (entry, "requeue", 1, letter)
    assert queued["input"] == '{"n": 1}'
    found = await desk.aget(letter)
    assert (found.state, found.resolved_by, found.requeued_entry_id) == ("retried", "ada", entry)


async def test_an_acknowledged_one_runs_nothing_and_frees_its_manifest(desk, died, yard):
    manifest = await yard.manifest("m")
    letter = await died(kind="scheduled", manifest=manifest)
    assert not await yard.marker(manifest)
    await desk.aacknowledge(letter, note="known", actor="ada")
    assert await yard.queued() == []
    assert await yard.marker(manifest)
    assert (await desk.aget(letter)).note == "known"


async def test_a_resolution_starts_the_count_of_failures_anew(desk, died, yard):
    manifest = await yard.manifest("m")
    await desk.arequeue(await died(kind="scheduled", manifest=manifest))
    row = await yard.conn.fetchrow(
        "SELECT last_resolved_at, next_run_at FROM interlock.manifest WHERE id = $1", manifest
    )
    assert row["last_resolved_at"] is not None
    assert row["next_run_at"] is None  # the requeue itself is queued


async def test_a_manual_run_stays_one_that_blocks_nothing(desk, died, yard):
    manifest = await yard.manifest("m")
    await desk.arequeue(await died(kind="manual", manifest=manifest))
    assert [entry["kind"] for entry in await yard.queued()] == ["manual"]
    assert await yard.conn.fetchval("SELECT last_resolved_at FROM interlock.manifest WHERE id = $1", manifest) is None


async def test_each_activation_of_a_dormant_child_has_a_dead_letter_of_its_own(desk, died, yard):
    """It has an input of its own, so that the one that is open says nothing about it."""
    child = await yard.manifest("repair", kind="dormant", parent=await yard.manifest("parent"), planned=False)
    letters = [await died(kind="dormant", manifest=child) for _ in range(2)]
    assert [letter.id for letter in await desk.alist()] == letters
    await desk.arequeue_all()
    assert [entry["kind"] for entry in await yard.queued()] == ["dormant", "dormant"]


async def test_of_many_who_resolve_it_at_once_one_wins(desk, died, yard):
    letter = await died()
    acts = [desk.arequeue(letter, actor=f"a{n}") for n in range(4)]
    acts += [desk.aacknowledge(letter, actor=f"b{n}") for n in range(4)]
    answers = await asyncio.gather(*acts, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, AlreadyResolved)]
    assert len(refused) == len(acts) - 1
    assert len(await yard.queued()) == ((await desk.aget(letter)).state == "retried")


async def test_what_does_not_exist_is_named(desk):
    with pytest.raises(UnknownDeadLetter, match="4711"):
        await desk.arequeue(4711)
    with pytest.raises(UnknownDeadLetter, match="4711"):
        await desk.aacknowledge(4711)


async def test_the_open_ones_are_listed_oldest_first(desk, died):
    letters = [await died() for _ in range(3)]
    await desk.aacknowledge(letters[1])
    assert [letter.id for letter in await desk.alist()] == [letters[0], letters[2]]


async def test_the_blocking_twins_do_the_same(desk, died, yard):
    first, second = await died(), await died()
    await asyncio.to_thread(desk.requeue, first, actor="ada")
    await asyncio.to_thread(desk.acknowledge, second, note="n")
    assert await asyncio.to_thread(desk.list) == []
    assert (await asyncio.to_thread(desk.get, second)).state == "acknowledged"
