"""Work that runs elsewhere: claimed, committed, submitted; what is not taken is queued again or left to a person."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest

from interlock import failpoints
from interlock.dispatch.submitters.inline import InlineSubmitter
from interlock.dispatch.submitters.postgres import PostgresSubmitter
from interlock.observe.events.work import SubmitFailed
from tests.integration.dispatch.ramp import Hands

SERVER = uuid4()


class Remote:
    """Takes work, or refuses so many times; sees what the database says at that moment."""

    name = "remote"

    def __init__(self, conn, trains=("far",), refuses: int = 0) -> None:
        self.trains, self._conn, self.refuses = frozenset(trains), conn, refuses
        self.taken, self.seen, self.at_once, self.most_at_once = [], [], 0, 0
        self._lock = asyncio.Lock()

    async def submit(self, submission) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            async with self._lock:
                row = await self._conn.fetchrow(
                    "SELECT state, submitter, server_id, claim_token FROM interlock.execution WHERE id = $1",
                    submission.execution_id,
                )
            self.seen.append(dict(row))
            if self.refuses > 0:
                self.refuses -= 1
                raise ConnectionError("nobody at home")
            self.taken.append(submission)
        finally:
            self.at_once -= 1


@pytest.fixture(autouse=True)
def nothing_stays_armed():
    yield
    failpoints.disarm()


def dispatcher(ramp, remote, **settings):
    return ramp.dispatcher(remote=[remote], server=lambda: SERVER, hands=Hands(["work", "far"]), **settings)


async def execution(ramp, entry_id: int):
    return await ramp.conn.fetchrow(
        "SELECT * FROM interlock.execution WHERE entry_id = $1 ORDER BY id DESC LIMIT 1", entry_id
    )


async def make_due(ramp) -> None:
    await ramp.conn.execute("UPDATE interlock.work_queue SET scheduled_at = now() WHERE state = 'queued'")


async def test_a_routed_train_is_submitted_after_the_commit_under_this_servers_lease(ramp):
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word
    remote = Remote(ramp.conn)
    cycle = await dispatcher(ramp, remote).tick()
    [submission] = remote.taken
    assert (cycle.submitted, submission.entry_id, submission.train, submission.input) == (1, id, "far", "{}")
    [seen] = remote.seen
    assert (seen["state"], seen["submitter"], seen["server_id"]) == ("pending", "remote", SERVER)
    assert seen["claim_token"] is not None
    row = await execution(ramp, id)
    assert (row["state"], row["server_id"], row["claim_token"]) == ("pending", None, None)
    assert await ramp.conn.fetchval("SELECT count(*) FROM interlock.background_job") == 0


async def test_other_trains_go_to_the_worker(ramp):
    [here], [far] = await ramp.queue(), await ramp.queue(train="far")
    remote = Remote(ramp.conn)
    cycle = await dispatcher(ramp, remote).tick()
    assert [one.entry_id for one in cycle.dispatched] == [here]
    assert [one.entry_id for one in remote.taken] == [far]


@pytest.mark.parametrize("most", [1, 4])
async def test_no_more_are_claimed_than_can_be_submitted_at_once(ramp, most):
    await ramp.queue(9, train="far")
    remote = Remote(ramp.conn)
    claimed = []

    async def look() -> None:
        async with remote._lock:
            claimed.append(
                await ramp.conn.fetchval("SELECT count(*) FROM interlock.execution WHERE claim_token IS NOT NULL")
            )

    failpoints.arm("dispatch.before_submit", look)
    cycle = await dispatcher(ramp, remote, max_concurrent_dispatch=most).tick()
    assert (cycle.submitted, remote.most_at_once) == (9, most)
    assert max(claimed) <= most


async def test_a_cycle_submits_no_more_than_its_limit(ramp):
    await ramp.queue(9, train="far")
    assert (await dispatcher(ramp, Remote(ramp.conn), max_queued_jobs_per_cycle=4).tick()).submitted == 4


async def test_a_failed_submit_closes_the_execution_and_queues_the_entry_again(ramp):
    [id] = await ramp.queue(train="far", priority=9)  # noqa: A001  the row's own word
    before = await ramp.entry(id)
    remote = Remote(ramp.conn, refuses=1)
    one = dispatcher(ramp, remote)
    assert (await one.tick()).failed_submits == 1
    row, entry = await execution(ramp, id), await ramp.entry(id)
    assert (row["state"], row["failure"], row["error_type"]) == ("failed", "submit_failed", "ConnectionError")
    assert (entry["state"], entry["submits"], entry["attempt"]) == ("queued", 1, before["attempt"])
    assert (entry["created_at"], entry["priority"]) == (before["created_at"], before["priority"])
    assert entry["previous_execution_id"] == row["id"]
    [told] = ramp.told(SubmitFailed)
    assert not told.final
    await make_due(ramp)
    assert (await one.tick()).submitted == 1


@pytest.mark.parametrize(("attempts", "submits"), [(3, 3), (1, 1), (0, 1)])
async def test_after_the_last_failed_submit_the_work_is_left_to_a_person(ramp, attempts, submits):
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word
    remote = Remote(ramp.conn, refuses=99)
    one = dispatcher(ramp, remote, max_dispatch_attempts=attempts)
    for _ in range(submits):
        assert (await one.tick()).failed_submits == 1
        await make_due(ramp)
    assert (await one.tick()).failed_submits == 0
    dead = await ramp.conn.fetchrow("SELECT * FROM interlock.dead_letter")
    assert (dead["reason"], dead["first_entry_id"], dead["state"]) == ("submit_failed", id, "awaiting_intervention")
    assert [event.final for event in ramp.told(SubmitFailed)] == [False] * (submits - 1) + [True]


async def test_a_submit_that_fails_after_another_has_recovered_the_work_changes_nothing(ramp):
    """This server was taken for lost while it submitted: the execution belongs to recovery by then."""
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word

    class Slow(Remote):
        async def submit(self, submission) -> None:
            await ramp.conn.execute(
                "UPDATE interlock.execution SET state = 'failed', failure = 'worker_lost', ended_at = now()"
                " WHERE id = $1",
                submission.execution_id,
            )
            raise ConnectionError("too late")

    await dispatcher(ramp, Slow(ramp.conn)).tick()
    assert (await execution(ramp, id))["failure"] == "worker_lost"
    assert (await ramp.entry(id))["state"] == "dispatched"


async def test_caps_hold_for_routed_trains(ramp):
    await ramp.group("default", cap=2)
    await ramp.queue(9, train="far")
    assert (await dispatcher(ramp, Remote(ramp.conn), max_concurrent_dispatch=5).tick()).submitted == 2


async def test_a_server_that_is_not_registered_submits_nothing(ramp):
    await ramp.queue(train="far")
    remote = Remote(ramp.conn)
    cycle = await ramp.dispatcher(remote=[remote], hands=Hands(["far"])).tick()
    assert (cycle.submitted, cycle.failed_submits, remote.taken) == (0, 0, [])


async def test_inline_work_has_run_when_the_tick_ends(ramp):
    [id] = await ramp.queue()  # noqa: A001  the row's own word
    ran = []

    async def run() -> None:
        ran.append(await ramp.conn.fetchval("SELECT entry_id FROM interlock.background_job"))

    ramp.local = InlineSubmitter(run)
    await ramp.dispatcher().tick()
    assert ran == [id]


async def test_the_local_worker_is_woken_and_others_only_when_there_is_more_than_it_can_take(ramp):
    woken, notices = [], []
    ramp.local = PostgresSubmitter(wake=lambda: woken.append(1), free_slots=lambda: 2, notify=notices.append)
    one = ramp.dispatcher(job_dispatcher_polling_interval=timedelta(seconds=1))
    await one.tick()
    assert (woken, notices) == ([], [])
    await ramp.queue(2)
    await one.tick()
    assert (len(woken), notices) == (1, [])
    await ramp.queue(3)
    await one.tick()
    assert (len(woken), notices) == (2, ["job:"])
