"""A runner in a process of its own: killed, stopped, absent and full."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.harness.ports import free_port
from tests.harness.waiting import eventually
from tests.harness.working import STARTING


class Yonder:
    """One server that dispatches, and runners that come and go at one address."""

    def __init__(self, works) -> None:
        self.works, self.port, self.started = works, free_port(), 0

    async def start(self, what: str, **options):
        self.started += 1
        arguments = (self.works.dsn, f"{what}{self.started}", self.port, options)
        process = self.works.fleet.start(f"tests.acceptance.runners:{what}", *arguments, name=f"{what}{self.started}")
        process.server = (await process.expect("up", STARTING))["server"]
        return process

    async def fetchval(self, question: str):
        return await self.works.conn.fetchval(question)


@pytest.fixture
def yonder(works) -> Yonder:
    return Yonder(works)


async def test_routed_work_runs_on_the_runner_and_ends_there(yonder, shop):
    server, runner = await asyncio.gather(yonder.start("submit"), yonder.start("run"))
    handles = await shop.aenqueue_many([shop.trains.get("work").bind(number) for number in range(30)])
    assert [await handle.aresult(timeout=60) for handle in handles] == list(range(30))
    assert await yonder.fetchval("SELECT array_agg(DISTINCT pid) FROM public.ledger") == [runner.pid]
    assert await yonder.fetchval("SELECT count(*) FROM interlock.background_job") == 0
    cancelled = await shop.trains.get("announced").aenqueue(60.0)
    await runner.expect("running")
    await shop.acancel_entry(cancelled.id, actor="ada")
    assert (await runner.expect("met"))["what"] == "CancelledError"
    for process in (server, runner):
        process.terminate()
        await process.expect("stopped")


async def test_what_a_killed_runner_was_running_runs_again_within_seconds(yonder, works, shop):
    server, runner = await asyncio.gather(yonder.start("submit"), yonder.start("run"))
    await works.may_judge(server)
    await shop.trains.get("announced").aenqueue(60.0)
    await runner.expect("running")
    runner.kill()
    killed = await yonder.fetchval("SELECT clock_timestamp()")
    runner = await yonder.start("run")
    again = await runner.expect("running")
    assert again["attempt"] == 1
    failed = (await works.executions("failure, ended_at"))[0]
    assert failed["failure"] == "worker_lost"
    assert failed["ended_at"] - killed < timedelta(seconds=15)


async def test_what_a_stopped_runner_was_running_is_handed_back_and_runs_on_the_next(yonder, shop):
    _, runner = await asyncio.gather(yonder.start("submit"), yonder.start("run", shutdown_timeout=0.2))
    await shop.trains.get("announced").aenqueue(60.0)
    await runner.expect("running")
    runner.terminate()
    await runner.expect("stopped")
    assert (await (await yonder.start("run")).expect("running"))["attempt"] == 1
    assert await yonder.fetchval("SELECT max(crashes) FROM interlock.work_queue") == 0


async def test_while_the_runner_is_away_work_is_tried_again_and_then_left_to_a_person(yonder, shop):
    await yonder.start("submit", max_dispatch_attempts=2)
    handle = await shop.trains.get("work").aenqueue(7)
    letter = "SELECT id FROM interlock.dead_letter WHERE reason = 'submit_failed'"
    number = await eventually(lambda: yonder.fetchval(letter), what="the dead letter")
    failures = "SELECT array_agg(failure) FROM interlock.execution"
    assert await yonder.fetchval(failures) == ["submit_failed", "submit_failed"]
    assert await handle.astatus() == "dead_lettered"
    await yonder.start("run")
    requeued = await shop.dead_letters.arequeue(number, actor="ada")
    assert requeued
    done = "SELECT count(*) FROM interlock.execution WHERE state = 'completed'"
    await eventually(lambda: yonder.fetchval(done), what="the end of the requeued work")


async def test_a_full_runner_lets_work_wait_and_uses_no_attempt(yonder, works, shop):
    await asyncio.gather(yonder.start("submit", max_dispatch_attempts=1), yonder.start("run", worker_slots=2))
    await shop.aenqueue_many([shop.trains.get("work").bind(number, 0.3) for number in range(10)])
    await works.all_ended(10)
    assert [row["state"] for row in await works.executions("state")] == ["completed"] * 10
    assert await yonder.fetchval("SELECT sum(submits) FROM interlock.work_queue") == 0
