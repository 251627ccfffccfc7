"""How a running body is told to stop, and what it meets."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from interlock.errors import CancelledByRequest, LeaseLost
from interlock.runtime.threads import Threads
from interlock.worker.job import Cause, interruptible
from tests.unit.worker.test_outcome import a_job


async def run(body, job):
    async def wrapped():
        job.began = True
        return await interruptible(body(), job)

    job.task = asyncio.create_task(wrapped())
    await asyncio.sleep(0)
    return job.task


async def test_the_result_of_a_body_passes_through():
    async def body():
        await asyncio.sleep(0)
        return 7

    assert await (await run(body, a_job())) == 7


async def test_a_body_meets_the_loss_of_its_lease_by_name():
    met = []

    async def body():
        try:
            await asyncio.sleep(60)
        except LeaseLost as lost:
            met.append(lost)
            return "cleaned up"

    job = a_job()
    task = await run(body, job)
    job.interrupt(Cause.LOST)
    assert await task == "cleaned up"
    assert met


async def test_the_loss_of_the_lease_ends_the_children_of_a_task_group_too():
    ended = []

    async def child():
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    async def body():
        async with asyncio.TaskGroup() as group:
            group.create_task(child())
            group.create_task(child())

    job = a_job()
    task = await run(body, job)
    await asyncio.sleep(0)
    job.interrupt(Cause.LOST)
    with pytest.raises((LeaseLost, asyncio.CancelledError)):
        await task
    assert ended == [True, True]


async def test_a_cancellation_by_a_person_is_a_plain_cancellation():
    async def body():
        await asyncio.sleep(60)

    job = a_job()
    task = await run(body, job)
    job.interrupt(Cause.PERSON)
    with pytest.raises(asyncio.CancelledError) as met:
        await task
    assert not isinstance(met.value, LeaseLost)


async def test_a_body_is_cancelled_once_so_that_its_cleanup_may_wait():
    cleaned = []

    async def body():
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            cleaned.append(True)

    job = a_job()
    task = await run(body, job)
    for _ in range(3):
        job.interrupt(Cause.PERSON)
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == [True]


def test_the_first_cause_counts_and_a_loss_beats_all():
    job = a_job()
    assert job.mark(Cause.TIMEOUT)
    assert not job.mark(Cause.PERSON)
    assert job.cause is Cause.TIMEOUT
    assert job.mark(Cause.LOST)
    assert job.cause is Cause.LOST


def test_who_asks_is_told():
    job = a_job()
    job.stop_if_marked()
    job.mark(Cause.PERSON)
    with pytest.raises(CancelledByRequest, match="requested"):
        job.stop_if_marked()
    job.mark(Cause.LOST)
    with pytest.raises(LeaseLost):
        job.stop_if_marked()


async def test_threads_are_started_as_needed_and_never_more_than_the_limit():
    threads, go_on, names = Threads(2), threading.Event(), set()

    def body():
        names.add(threading.current_thread().name)
        go_on.wait(60)

    futures = [threads.call(body) for _ in range(5)]
    while len(names) < 2:  # noqa: ASYNC110  the threads have no event loop to signal with
        await asyncio.sleep(0.001)
    go_on.set()
    await asyncio.gather(*futures)
    assert len(names) == 2
    threads.close()


async def test_a_thread_survives_whatever_its_function_raises():
    threads = Threads(1)
    with pytest.raises(SystemExit):
        await threads.call(_exit)
    assert await threads.call(lambda: 7) == 7
    threads.close()


def _exit() -> None:
    raise SystemExit(3)


async def test_closing_costs_the_event_loop_a_moment_however_many_threads_are_busy():
    threads, go_on = Threads(60), threading.Event()
    busy = [threads.call(go_on.wait) for _ in range(60)]
    began = time.monotonic()
    threads.close()
    took = time.monotonic() - began
    go_on.set()
    await asyncio.gather(*busy)
    assert took < 1.5  # one after the other, at 50 ms each, it took 3 s
