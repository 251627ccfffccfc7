"""A killed worker loses nothing: its jobs run again elsewhere, each claimed by one at a time."""

from __future__ import annotations

import asyncio
import random
import time

import pytest


async def storm(works, shop, *, jobs: int, kills: int, servers: int = 4) -> None:
    """Kill a random server every second and start another in its place, while the jobs run."""
    dice, work = random.Random(7), shop.trains.get("work")
    options = {"max_crashes": 1000, "worker_slots": 20}
    running = [await works.server(**options) for _ in range(servers)]
    for start in range(0, jobs, 1000):
        await shop.aenqueue_many([work.bind(n, 0.2) for n in range(start, min(start + 1000, jobs))])
    for _ in range(kills):
        await asyncio.sleep(1)  # the rhythm of the storm, not a wait for something
        running.pop(dice.randrange(len(running))).kill()
        running.append(works.launch(**options))
    await works.all_ended(jobs, 240)


async def judge(works, jobs: int) -> None:
    states = {row["state"] for row in await works.executions("state")}
    assert states <= {"completed", "failed"}
    failures = {row["failure"] for row in await works.executions("failure")}
    assert failures <= {None, "worker_lost"}
    assert await works.overlapping_claims() == 0
    completed = await works.conn.fetch(
        "SELECT first_entry_id, count(*) AS n, bool_or(l.execution IS NOT NULL) AS ran FROM interlock.execution e"
        " LEFT JOIN public.ledger l ON l.execution = e.id WHERE state = 'completed' GROUP BY first_entry_id"
    )
    assert len(completed) == jobs
    assert all(row["n"] == 1 and row["ran"] for row in completed)
    left = "SELECT count(*) FROM interlock.work_queue WHERE state = 'queued'"
    assert await works.conn.fetchval(left) == 0
    assert await works.conn.fetchval("SELECT count(*) FROM interlock.background_job") == 0


@pytest.mark.timeout(200)
async def test_a_random_server_dies_every_second_and_every_job_ends_once(works, shop):
    await storm(works, shop, jobs=600, kills=6)
    await judge(works, 600)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_random_server_dies_every_second_under_twenty_thousand_jobs(works, shop):
    await storm(works, shop, jobs=20_000, kills=60)
    await judge(works, 20_000)


DEFAULTS = {"lease": 10.0, "heartbeat": 3.0, "recovery_interval": 1.0, "shutdown_timeout": 30.0}


@pytest.mark.timeout(200)
async def test_a_killed_servers_job_runs_again_within_fifteen_seconds_by_default_under_a_backlog(works, shop):
    other = await works.server(**DEFAULTS, worker_slots=4)
    victim = await works.server(**DEFAULTS, worker_slots=4)
    await works.may_judge(other)
    handle = await shop.trains.get("announced").aenqueue(600.0)
    first = await _running_on([victim, other])
    work = shop.trains.get("work")
    await shop.aenqueue_many([work.bind(n, 0.05) for n in range(1000)])
    holder, survivor = (victim, other) if first is victim else (other, victim)
    await works.may_judge(survivor)
    holder.kill()
    died = time.monotonic()
    message = await survivor.expect("running", 30)
    assert time.monotonic() - died < 15
    assert message["attempt"] == 1
    assert await shop.acancel_entry(handle.id)


async def _running_on(servers):
    tasks = {asyncio.create_task(server.expect("running", 30)): server for server in servers}
    done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    return tasks[done.pop()]


@pytest.mark.timeout(200)
async def test_a_job_that_kills_its_server_ends_as_a_crash_loop(works, shop):
    judge = await works.server(roles=["manifests"])
    await works.may_judge(judge)
    await shop.trains.get("deadly").aenqueue()
    for _ in range(3):
        server = works.launch()
        await server.expect("running", 60)
        await server.wait(20)
    letter = await _first_dead_letter(works)
    assert (letter["reason"], letter["crashes"], letter["attempts"]) == ("crash_loop", 3, 1)
    assert {row["failure"] for row in await works.executions("failure")} == {"worker_lost"}


async def _first_dead_letter(works):
    from tests.harness.waiting import eventually

    return await eventually(lambda: works.conn.fetchrow("SELECT * FROM interlock.dead_letter"), 30, "a dead letter")
