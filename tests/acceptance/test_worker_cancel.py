"""Cancellation, shutdown and deploys across processes."""

from __future__ import annotations

import time

from tests.harness.waiting import eventually


async def test_a_cancel_from_another_process_ends_an_async_job_within_a_second(works, shop):
    server = await works.server()
    handle = await shop.trains.get("announced").aenqueue(600.0)
    await server.expect("running")
    await shop.acancel_entry(handle.id, actor="ada")
    cancelled = time.monotonic()  # one clock for all processes of a machine
    met = await server.expect("met")
    assert met["what"] == "CancelledError"
    assert met["at"] - cancelled < 1
    await eventually(lambda: _state(works, "cancelled"), 60, "the end of the job")


async def test_a_cancel_from_another_process_ends_a_thread_job_at_its_next_check(works, shop):
    server = await works.server()
    handle = await shop.trains.get("checking").aenqueue()
    await server.expect("running")
    await shop.acancel_entry(handle.id)
    await server.expect("met")
    await eventually(lambda: _state(works, "cancelled"), 60, "the end of the job")


async def _state(works, state: str) -> bool:
    return {row["state"] for row in await works.executions("state")} == {state}


async def test_a_deploy_hands_its_running_job_to_another_server_with_the_same_attempt(works, shop):
    old = await works.server(shutdown_timeout=0.5)
    await shop.trains.get("announced").aenqueue(600.0)
    await old.expect("running")
    new = await works.server()
    old.terminate()
    assert (await new.expect("running"))["attempt"] == 1
    assert await old.wait() == 0
    assert (await old.expect("stopped"))["forced"] is False
    [row] = await works.executions("state, crashes, attempt")
    assert tuple(row) == ("in_progress", 0, 1)


async def test_a_second_signal_forces_and_the_job_is_still_not_lost(works, shop):
    old = await works.server(shutdown_timeout=600.0)
    await shop.trains.get("announced").aenqueue(600.0)
    await old.expect("running")
    new = await works.server()
    old.terminate()
    await old.expect("draining")
    old.terminate()
    assert await old.wait() == 0
    assert (await new.expect("running"))["attempt"] == 1
