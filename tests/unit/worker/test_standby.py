"""How many jobs may stand by, and for how long."""

from __future__ import annotations

import asyncio

import pytest

from interlock.worker import standby
from interlock.worker.standby import Standby


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 0.0

        def monotonic(self) -> float:
            return self.now

    monkeypatch.setattr(standby, "time", Clock())
    return standby.time


def at_pace(clock, *, ended: int, within: float) -> Standby:
    jobs = Standby(lambda _: None)
    jobs.filled([])
    clock.now += within
    for _ in range(ended):
        jobs.following()
    return jobs


@pytest.mark.parametrize(
    ("ended", "within", "room"),
    [
        (50, 0.001, 500),
        (50, 0.0001, 500),
        (50, 0.01, 50),
        (50, 0.1, 5),
        (50, 1.0, 0),
        (1, 0.0, 500),
        (0, 0.0, 0),
        (0, 1.0, 0),
    ],
)
def test_as_many_as_begin_within_a_moment_at_the_pace_since_the_last_fill(clock, ended, within, room):
    assert at_pace(clock, ended=ended, within=within).room == room


async def test_nothing_is_brought_while_others_stand_by(clock):
    jobs = at_pace(clock, ended=50, within=0.001)
    jobs.filled(["a", "b"])
    clock.now += 0.001
    assert (jobs.following(), jobs.room) == ("a", 0)
    assert (jobs.following(), jobs.room) == ("b", 20)
    assert jobs.following() is None


async def test_after_the_patience_all_that_did_not_begin_are_passed_on_at_once(monkeypatch):
    monkeypatch.setattr(standby, "PATIENCE", 0.02)
    passed: asyncio.Queue = asyncio.Queue()
    jobs = Standby(passed.put_nowait)
    jobs.filled(["a", "b", "c"])
    assert jobs.following() == "a"
    assert await asyncio.wait_for(passed.get(), 30) == ["b", "c"]
    assert not jobs


async def test_those_that_began_in_time_end_the_patience_for_those_before_them_only(monkeypatch):
    monkeypatch.setattr(standby, "PATIENCE", 0.05)
    passed: list = []
    jobs = Standby(passed.append)
    jobs.filled(["a"])
    jobs.following()
    await asyncio.sleep(0.1)
    assert not passed
    jobs.filled(["b"])
    assert jobs.dismiss() == ["b"]
    await asyncio.sleep(0.1)
    assert not passed
