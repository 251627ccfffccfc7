"""Answers that were lost with the connection: what a claim got is run, and what an end wrote is known to be written."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from interlock import Cancel, Snooze, current_execution, failpoints
from interlock.observe.events import ExecutionSettled, LeaseLostByServer, SettleRefused
from interlock.store.background_job import BackgroundJobs
from interlock.worker.settle import Settler
from tests.harness.waiting import eventually


@pytest.fixture
def answers_lost(monkeypatch):
    """The next claim is committed, and its answer never arrives."""
    claim, lost = BackgroundJobs.claim, []

    async def claim_in_vain(self, conn, **arguments):
        claims = await claim(self, conn, **arguments)
        if claims and not lost:
            lost.extend(claims)
            raise ConnectionResetError("the connection ended")
        return claims

    monkeypatch.setattr(BackgroundJobs, "claim", claim_in_vain)
    return lost


async def test_what_was_claimed_without_an_answer_is_run(works, yard, answers_lost):
    @works.app.train
    async def work() -> int:
        return 1

    runs = [await yard.dispatch() for _ in range(3)]
    await works.start()
    assert [(await works.ended(run))["state"] for run in runs] == ["completed"] * 3
    assert len(answers_lost) == 3


async def test_control_without_the_look_back_it_stays_claimed_by_nobody(works, yard, answers_lost, monkeypatch):
    monkeypatch.setattr(BackgroundJobs, "recall", _nothing)

    @works.app.train
    async def work() -> int:
        return 1

    lost = await yard.dispatch()
    await works.start()
    await works.reaches(lost, "in_progress")
    later = await yard.dispatch()
    assert (await works.ended(later))["state"] == "completed"
    assert (await yard.execution(lost))["state"] == "in_progress"


async def _nothing(_self, _conn, **_) -> list:
    return []


async def test_bodies_hear_of_a_shutdown_although_nobody_says_what_became_of_a_claim(works, yard, monkeypatch):
    app = works.new_app(shutdown_timeout=timedelta(seconds=0.1))
    began, asked, heard = asyncio.Event(), asyncio.Event(), asyncio.Event()
    claim = BackgroundJobs.claim

    @app.train
    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            heard.set()

    async def claim_in_vain(self, conn, **arguments):
        await claim(self, conn, **arguments)
        raise ConnectionResetError("the connection ended")

    async def never_answered(_self, _conn, **_) -> list:
        asked.set()
        await asyncio.Event().wait()

    await yard.dispatch()
    async with app.running(["worker"]):
        await asyncio.wait_for(began.wait(), 60)
        monkeypatch.setattr(BackgroundJobs, "claim", claim_in_vain)
        monkeypatch.setattr(BackgroundJobs, "recall", never_answered)
        await yard.dispatch()
        await asyncio.wait_for(asked.wait(), 60)
    await asyncio.wait_for(heard.wait(), 30)


@pytest.fixture
def ending_answers_lost(monkeypatch):
    """The next end that is not a plain success is committed, and its answer never arrives."""
    end, lost = Settler._end, []

    async def end_in_vain(self, endings):
        ended = await end(self, endings)
        if not lost:
            lost.extend(ended)
            raise ConnectionResetError("the connection ended")
        return ended

    monkeypatch.setattr(Settler, "_end", end_in_vain)
    return lost


async def end_without_an_answer(works, yard, how: str) -> dict:
    @works.app.train
    async def work() -> str | Snooze | Cancel:
        match how:
            case "fail":
                raise ValueError("broken")
            case "snooze":
                return Snooze(timedelta(hours=1))
            case "cancel":
                return Cancel("no more")
        return "done"

    run = await yard.dispatch(key="k" if how == "complete" else None)
    async with works.app.running(["worker"]):
        await works.ended(run)
    return await yard.execution(run)


@pytest.mark.parametrize("how", ["fail", "snooze", "cancel", "complete"])
async def test_an_end_that_was_written_without_an_answer_is_told_as_what_it_is(works, yard, ending_answers_lost, how):
    row = await end_without_an_answer(works, yard, how)
    assert len(ending_answers_lost) == 1
    assert [event.outcome for event in works.told(ExecutionSettled)] == [row["state"]]
    assert works.told(SettleRefused) == []
    assert len(await yard.queued()) == (how in ("fail", "snooze"))


async def test_control_without_the_look_at_the_row_it_is_taken_for_anothers(
    works, yard, ending_answers_lost, monkeypatch
):
    async def nothing(self, jobs) -> dict:
        return {}

    monkeypatch.setattr(Settler, "_written_before", nothing)
    await end_without_an_answer(works, yard, "fail")
    assert len(works.told(SettleRefused)) == 1


async def test_what_recovery_ended_meanwhile_is_still_refused(works, yard, monkeypatch):
    """Its answer is lost because nothing was written, and by the next try the execution was another's to end."""
    end, tries = Settler._end, []

    async def too_late(self, endings):
        tries.append(endings)
        if len(tries) == 1:
            async with self._database.connection() as conn:
                await conn.execute(
                    "UPDATE interlock.execution SET state = 'failed', failure = 'worker_lost', ended_at = now()"
                )
            raise ConnectionResetError("the connection ended")
        return await end(self, endings)

    monkeypatch.setattr(Settler, "_end", too_late)
    await end_without_an_answer(works, yard, "fail")
    assert [event.outcome for event in works.told(SettleRefused)] == ["failed"]
    assert works.told(ExecutionSettled) == []


async def test_what_was_claimed_under_a_lease_that_was_lost_meanwhile_never_begins(works, yard):
    ran, late = [], []

    @works.app.train
    async def work() -> None:
        ran.append(current_execution().id)

    async def lose_the_lease() -> None:
        if not late and await yard.conn.fetchval("SELECT count(*) FROM interlock.background_job") == 0:
            late.append(1)
            await yard.conn.execute(LOSE)
            await eventually(lambda: works.told(LeaseLostByServer), 60, "the loss of the lease")

    first = await yard.dispatch()
    failpoints.arm("worker.claimed", lose_the_lease)
    try:
        await works.start()
        await eventually(lambda: ran, 60, "the run that recovery queued")
    finally:
        failpoints.disarm()
    assert first not in ran
    assert len(works.told(SettleRefused)) == 1


LOSE = "UPDATE interlock.server SET state = 'lost', ended_at = clock_timestamp() WHERE state = 'alive'"
