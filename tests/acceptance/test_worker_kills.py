"""A killed worker loses nothing: its jobs run again elsewhere, each claimed by one at a time."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from tests.harness.waiting import eventually
from tests.harness.working import client, running_on


async def storm(works, *, jobs: int, kills: int, servers: int = 4) -> None:
    """Kill a random server every second and start another in its place, while the jobs run.

    How many crashes end a job is the word of whoever enqueues: the storm may well hit one three times.
    """
    dice = random.Random(7)
    running = [await works.server(worker_slots=20) for _ in range(servers)]
    async with client(works.dsn, max_crashes=1000) as shop:
        work = shop.trains.get("work")
        for start in range(0, jobs, 1000):
            await shop.aenqueue_many([work.bind(n, 0.2) for n in range(start, min(start + 1000, jobs))])
    for _ in range(kills):
        await asyncio.sleep(1)  # the rhythm of the storm, not a wait for something
        running.pop(dice.randrange(len(running))).kill()
        running.append(works.launch(worker_slots=20))
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


async def test_a_random_server_dies_every_second_and_every_job_ends_once(works):
    await storm(works, jobs=600, kills=6)
    await judge(works, 600)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_random_server_dies_every_second_under_twenty_thousand_jobs(works):
    await storm(works, jobs=20_000, kills=60)
    await judge(works, 20_000)


STORY = """
WITH entry AS (
    INSERT INTO interlock.work_queue (state, kind, train, input, attempt, max_attempts, max_crashes, retry_delay,
        max_retry_delay, retry_backoff, group_id, group_priority, priority, ready, left_at)
    SELECT 'dispatched', 'adhoc', 'work', '{}', 1, 3, 3, '1 s', '1 s', 1, 1, 0, 0, true, now()
    FROM generate_series(1, 2)
    RETURNING id
)
INSERT INTO interlock.execution (state, failure, output, entry_id, first_entry_id, kind, train, input, group_id,
    attempt, crashes, max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, started_at, ended_at)
SELECT state, failure, CASE WHEN failure IS NULL THEN '1'::jsonb END, entry.id, entry.id, 'adhoc', 'work', '{}', 1, 1,
    0, 3, 3, '1 s', '1 s', 1, now() + since * interval '1 s', now() + (since + 1) * interval '1 s'
FROM entry CROSS JOIN (VALUES ('failed', 'worker_lost', 0), ('completed', NULL, 5)) AS run (state, failure, since)
"""
LAST = "WHERE id = (SELECT max(id) FROM interlock.execution WHERE state = 'completed')"
UPDATE = "UPDATE interlock.execution SET"
FAULTS = {
    "two claims at once": f"{UPDATE} started_at = started_at - interval '5 s' {LAST}",
    "completed twice": f"{UPDATE} state = 'completed', failure = NULL WHERE failure IS NOT NULL",
    "completed and never run": "DELETE FROM public.ledger",
    "never completed": f"{UPDATE} state = 'failed', failure = 'worker_lost', output = NULL {LAST}",
    "stuck": f"{UPDATE} state = 'pending', ended_at = NULL, output = NULL {LAST}",
    "failed by itself": f"{UPDATE} failure = 'error' WHERE failure IS NOT NULL",
    "left in the queue": "UPDATE interlock.work_queue SET state = 'queued', left_at = NULL WHERE id = 1",
    "left with the workers": "INSERT INTO interlock.background_job VALUES (1, 'work', 0, 0, now(), 1)",
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_control_the_judge_of_the_storm_finds_every_fault(works, fault):
    await works.conn.execute(STORY)
    await works.conn.execute("INSERT INTO public.ledger (execution) SELECT id FROM interlock.execution")
    await judge(works, 2)
    for table in ("execution", "work_queue"):
        await works.conn.execute(f"ALTER TABLE interlock.{table} DISABLE TRIGGER USER")
    await works.conn.execute(FAULTS[fault])
    with pytest.raises(AssertionError):
        await judge(works, 2)


DEFAULTS = {"lease": 10.0, "heartbeat": 3.0, "recovery_interval": 1.0, "shutdown_timeout": 30.0}


@pytest.mark.parametrize("backlog", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
async def test_a_killed_servers_job_runs_again_within_fifteen_seconds_by_default_under_a_backlog(works, shop, backlog):
    other = await works.server(**DEFAULTS, worker_slots=4)
    victim = await works.server(**DEFAULTS, worker_slots=4)
    await works.may_judge(other)
    handle = await shop.trains.get("announced").aenqueue(600.0)
    first = await running_on([victim, other])
    holder, survivor = (victim, other) if first is victim else (other, victim)
    await works.may_judge(survivor)
    work = shop.trains.get("work")
    for start in range(0, backlog, 1000):
        await shop.aenqueue_many([work.bind(n, 0.05) for n in range(start, start + 1000)])
    holder.kill()
    died = time.monotonic()
    waiting = await works.conn.fetchval("SELECT count(*) FROM interlock.work_queue WHERE state = 'queued'")
    assert waiting > backlog / 2
    message = await survivor.expect("running", 60)
    assert time.monotonic() - died < 15
    assert message["attempt"] == 1
    assert await shop.acancel_entry(handle.id)


async def test_control_without_recovery_what_a_killed_server_held_stays_with_it(works, shop):
    servers = [await works.server(recovery_interval=600.0) for _ in range(2)]
    for server in servers:
        await works.may_judge(server)
    await shop.trains.get("announced").aenqueue(600.0)
    holder = await running_on(servers)
    holder.kill()
    over = "SELECT lease_until + 2 * lease < statement_timestamp() FROM interlock.server WHERE id = $1::text::uuid"
    await eventually(lambda: works.conn.fetchval(over, holder.server), 60, "the end of its lease")
    later = await shop.trains.get("work").aenqueue(1)
    assert await later.aresult(timeout=60) == 1
    assert [row["state"] for row in await works.executions("state")] == ["in_progress", "completed"]
    with pytest.raises(AssertionError):
        await judge(works, 2)


async def test_a_job_that_kills_its_server_ends_as_a_crash_loop(works, shop):
    judge = await works.server(roles=["manifests"])
    await works.may_judge(judge)
    await shop.trains.get("deadly").aenqueue()
    for _ in range(3):
        server = works.launch()
        await server.expect("running", 60)
        await server.wait()
    letter = await _first_dead_letter(works)
    assert (letter["reason"], letter["crashes"], letter["attempts"]) == ("crash_loop", 3, 1)
    assert {row["failure"] for row in await works.executions("failure")} == {"worker_lost"}


async def _first_dead_letter(works):
    return await eventually(lambda: works.conn.fetchrow("SELECT * FROM interlock.dead_letter"), 60, "a dead letter")
