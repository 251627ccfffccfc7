"""What the holder of a job hears when it asks, although the answer may be about an earlier claim of it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import timedelta
from types import SimpleNamespace

import pytest

from interlock.model.execution import Interruption
from interlock.store.execution import Executions
from interlock.trains.registry import Registry
from interlock.worker.cancel import CancelWatch
from interlock.worker.job import Cause
from interlock.worker.slots import Slots
from tests.unit.worker.test_outcome import a_job


@pytest.fixture
def slots() -> Slots:
    return Slots(Registry(), slots=1)


@pytest.fixture
def watch(slots) -> CancelWatch:
    @asynccontextmanager
    async def connection():
        yield None

    return CancelWatch(SimpleNamespace(connection=connection, sql=None), slots, interval=timedelta(seconds=1))


async def test_what_belongs_to_another_by_now_is_lost(watch, slots, monkeypatch):
    async def lost(_self, _conn, ids, _tokens) -> list[Interruption]:
        return [Interruption(one, None, lost=True) for one in ids]

    monkeypatch.setattr(Executions, "watch", lost)
    slots.take(job := a_job())
    await watch.tick()
    assert job.cause is Cause.LOST


async def test_what_went_back_and_was_claimed_again_while_its_holder_asked_is_not_lost(watch, slots, monkeypatch):
    before, now = a_job(), a_job()

    async def about_the_earlier_claim(_self, _conn, ids, tokens) -> list[Interruption]:
        assert tokens == [before.token]
        slots.give_back(before)
        slots.take(now)
        return [Interruption(one, None, lost=True) for one in ids]

    monkeypatch.setattr(Executions, "watch", about_the_earlier_claim)
    slots.take(before)
    await watch.tick()
    assert now.cause is None
