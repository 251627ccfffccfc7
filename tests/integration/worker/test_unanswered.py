"""A claim whose answer was lost with the connection: what it got is run, not left claimed by nobody."""

from __future__ import annotations

import pytest

from interlock.store.background_job import BackgroundJobs


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
    monkeypatch.setattr("interlock.worker.worker.Worker._recall", _nothing)

    @works.app.train
    async def work() -> int:
        return 1

    lost = await yard.dispatch()
    await works.start()
    await works.reaches(lost, "in_progress")
    later = await yard.dispatch()
    assert (await works.ended(later))["state"] == "completed"
    assert (await yard.execution(lost))["state"] == "in_progress"


async def _nothing(_worker) -> None:
    return
