"""A server that stands still in the middle of a settle lets go of what it has locked, and writes it when it goes on."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from interlock import failpoints
from interlock.observe.events import SettleRefused
from tests.harness.unguarded import take_guard_off
from tests.harness.waiting import NeverHappenedError, eventually

FREE = "SELECT count(*) = 1 FROM (SELECT FROM interlock.execution WHERE id = $1 FOR UPDATE SKIP LOCKED) one"


class Standstill:
    """The first settle stops before its commit until it may go on."""

    def __init__(self) -> None:
        self.reached, self.goes_on, self.settles = asyncio.Event(), asyncio.Event(), 0

    async def __call__(self) -> None:
        self.settles += 1
        if self.settles == 1:
            self.reached.set()
            await self.goes_on.wait()


@pytest.fixture
def standstill():
    failpoints.arm("settle.before_commit", standstill := Standstill())
    yield standstill
    failpoints.disarm()


async def settling(works, yard, standstill) -> int:
    works.app = works.new_app(tick_idle_timeout=timedelta(seconds=0.1))

    @works.app.train
    async def work() -> None:
        raise ValueError("broken")

    run = await yard.dispatch()
    await works.start()
    await asyncio.wait_for(standstill.reached.wait(), 60)
    return run


async def test_a_settle_that_stands_still_lets_go_of_its_rows_and_is_written_once_when_it_goes_on(
    works, yard, standstill
):
    run = await settling(works, yard, standstill)
    await eventually(lambda: is_free(yard, run), 60)
    standstill.goes_on.set()
    assert (await works.ended(run))["failure"] == "error"
    assert standstill.settles == 2
    assert works.told(SettleRefused) == []
    assert len(await yard.queued()) == 1


async def test_control_without_its_limit_it_keeps_them_from_recovery_for_as_long_as_it_sleeps(
    works, yard, standstill, monkeypatch
):
    take_guard_off(monkeypatch, {"session/end_if_idle": "idle_in_transaction_session_timeout"}, "lock_timeout")
    run = await settling(works, yard, standstill)
    with pytest.raises(NeverHappenedError):
        await eventually(lambda: is_free(yard, run), 2)
    standstill.goes_on.set()


async def is_free(yard, run: int) -> bool:
    return await yard.conn.fetchval(FREE, run)
