"""A worker that stood still too long settles nothing; one that is only busy keeps what it has."""

from __future__ import annotations

import pytest

from tests.harness.waiting import eventually

LEASE = 1.5


async def sleep_past_the_lease(works, shop, seconds: float):
    """A server is stopped while it runs a job, another takes the job over, and the first goes on."""
    sleeper = await works.server()
    handle = await shop.trains.get("announced").aenqueue(seconds)
    await sleeper.expect("running", 30)
    other = await works.server()
    await works.may_judge(other)
    sleeper.stop()
    await other.expect("running", 60)
    sleeper.cont()
    return sleeper, other, handle


async def state_of(works) -> tuple[str, str | None]:
    row = (await works.executions("state, output"))[-1]
    return row["state"], row["output"]


@pytest.mark.timeout(180)
async def test_a_paused_worker_cannot_settle_what_another_has_claimed_and_its_body_meets_lease_lost(works, shop):
    sleeper, other, handle = await sleep_past_the_lease(works, shop, 15.0)
    assert (await sleeper.expect("met", 10))["what"] == "LeaseLost"
    await sleeper.expect("refused", 10)
    assert await state_of(works) == ("in_progress", None)
    assert await handle.aresult(timeout=60) == f"done {other.pid}"
    assert [tuple(row) for row in await works.executions("state, failure")] == [
        ("failed", "worker_lost"),
        ("completed", None),
    ]
    assert await works.overlapping_claims() == 0


async def _completed(works) -> bool:
    return (await state_of(works))[0] == "completed"


@pytest.mark.timeout(180)
async def test_a_settle_needs_the_token_of_the_claim(works, shop):
    sleeper = await works.server(worker_polling_interval=600.0, lease=30.0)
    await shop.trains.get("announced").aenqueue(1.0)
    await sleeper.expect("running", 30)
    await works.conn.execute("UPDATE interlock.execution SET claim_token = gen_random_uuid()")
    await sleeper.expect("refused", 30)
    assert await state_of(works) == ("in_progress", None)


@pytest.mark.timeout(180)
async def test_control_without_the_token_the_stale_settle_wins(works, shop):
    sleeper = await works.server(token_off=True, worker_polling_interval=600.0, lease=30.0)
    await shop.trains.get("announced").aenqueue(1.0)
    await sleeper.expect("running", 30)
    await works.conn.execute("UPDATE interlock.execution SET claim_token = gen_random_uuid()")
    await eventually(lambda: _completed(works), 30, "the stale settle")
    assert sleeper.heard("refused") == []


@pytest.mark.timeout(180)
async def test_a_blocked_event_loop_keeps_its_lease_and_its_job(works, shop):
    judge = await works.server(roles=["manifests"])
    worker = await works.server()
    await works.may_judge(judge)
    handle = await shop.trains.get("blocking").aenqueue(3 * LEASE)
    await worker.expect("running", 30)
    assert await handle.aresult(timeout=60) == "done"
    assert judge.heard("marked") == []
    assert [row["crashes"] for row in await works.executions("crashes")] == [0]
