"""A worker that stood still too long settles nothing; one that is only busy keeps what it has."""

from __future__ import annotations

from tests.harness.barrier import Barrier, armed
from tests.harness.waiting import eventually
from tests.harness.working import running_on

LEASE = 3.0


async def sleep_past_the_lease(works, shop, seconds: float):
    """A server is stopped while it runs a job, another takes the job over, and the first goes on."""
    servers = [await works.server() for _ in range(2)]
    for server in servers:
        await works.may_judge(server)
    handle = await shop.trains.get("announced").aenqueue(seconds)
    sleeper = await running_on(servers)
    [other] = [server for server in servers if server is not sleeper]
    sleeper.stop()
    await other.expect("running")
    sleeper.cont()
    return sleeper, other, handle


async def state_of(works) -> tuple[str, str | None]:
    row = (await works.executions("state, output"))[-1]
    return row["state"], row["output"]


async def test_a_paused_worker_cannot_settle_what_another_has_claimed_and_its_body_meets_lease_lost(works, shop):
    sleeper, other, handle = await sleep_past_the_lease(works, shop, 12.0)
    assert (await sleeper.expect("met"))["what"] == "LeaseLost"
    await sleeper.expect("refused")
    assert await state_of(works) == ("in_progress", None)
    assert await handle.aresult(timeout=60) == f"done {other.pid}"
    assert [tuple(row) for row in await works.executions("state, failure")] == [
        ("failed", "worker_lost"),
        ("completed", None),
    ]
    assert await works.overlapping_claims() == 0


async def _completed(works) -> bool:
    return (await state_of(works))[0] == "completed"


async def settle_too_late(works, shop, folder, **options):
    """A server that is about to settle what another has claimed meanwhile."""
    settling = Barrier(folder, "settle.before_write")
    sleeper = await works.server(worker_polling_interval=600.0, lease=60.0, env=armed(settling), **options)
    await shop.trains.get("announced").aenqueue(0.0)
    await settling.reached()
    await works.conn.execute("UPDATE interlock.execution SET claim_token = gen_random_uuid()")
    settling.release()
    return sleeper


async def test_a_settle_needs_the_token_of_the_claim(works, shop, tmp_path):
    sleeper = await settle_too_late(works, shop, tmp_path)
    await sleeper.expect("refused")
    assert await state_of(works) == ("in_progress", None)


async def test_control_without_the_token_the_stale_settle_wins(works, shop, tmp_path):
    sleeper = await settle_too_late(works, shop, tmp_path, token_off=True)
    await eventually(lambda: _completed(works), what="the stale settle")
    assert sleeper.heard("refused") == []


async def test_a_blocked_event_loop_keeps_its_lease_and_its_job(works, shop):
    judge = await works.server(roles=["manifests"], lease=LEASE)
    worker = await works.server(lease=LEASE)
    await works.may_judge(judge)
    handle = await shop.trains.get("blocking").aenqueue(3 * LEASE)
    await worker.expect("running")
    assert await handle.aresult(timeout=60) == "done"
    assert judge.heard("marked") == []
    assert [row["crashes"] for row in await works.executions("crashes")] == [0]
