"""A server that has the process to itself: no task ends it, and none is waited for at its end."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

import pytest

from interlock.runtime import main
from interlock.runtime.main import run_main

LOOPS = [pytest.param(asyncio.new_event_loop, id="asyncio")]
try:
    import uvloop
except ImportError:
    pass
else:
    LOOPS.append(pytest.param(uvloop.new_event_loop, id="uvloop"))

each_loop = pytest.mark.parametrize("loop", LOOPS)


async def exits() -> None:
    sys.exit(3)


async def stays(began: asyncio.Event) -> None:
    began.set()
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(600)


@each_loop
def test_it_answers_what_the_main_coroutine_answers(loop):
    async def seven() -> int:
        return 7

    assert run_main(seven(), loop) == 7


@each_loop
def test_whoever_awaits_a_task_that_exits_meets_it_and_everybody_goes_on(loop):
    met, beside = [], []

    async def server() -> int:
        other = asyncio.create_task(asyncio.sleep(0.05, "went on"))
        for _ in range(3):
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(exits())
            except SystemExit as end:
                met.append(end.code)
        beside.append(await other)
        return 1

    assert run_main(server(), loop) == 1
    assert (met, beside) == ([3, 3, 3], ["went on"])


@each_loop
def test_an_exit_of_the_main_coroutine_is_one(loop):
    async def server() -> None:
        asyncio.create_task(exits())  # noqa: RUF006  the first exit, which is passed over
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        sys.exit(4)

    with pytest.raises(SystemExit, match="4"):
        run_main(server(), loop)


@each_loop
def test_an_error_of_the_main_coroutine_is_raised(loop):
    async def server() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run_main(server(), loop)


@each_loop
def test_a_task_that_heeds_no_cancellation_is_left_behind(loop, monkeypatch):
    monkeypatch.setattr(main, "LAST_MOMENT", 0.05)

    async def server() -> str:
        began = asyncio.Event()
        server.task = asyncio.create_task(stays(began))
        await began.wait()
        return "ended"

    assert run_main(server(), loop) == "ended"
    assert not server.task.done()
    server.task.get_coro().close()
    server.task._log_destroy_pending = False


@each_loop
def test_a_task_that_takes_a_moment_to_clean_up_has_it(loop):
    ended = []

    async def careful() -> None:
        try:
            await asyncio.sleep(600)
        finally:
            await asyncio.sleep(0.02)
            ended.append(1)

    async def server() -> None:
        server.task = asyncio.create_task(careful())
        await asyncio.sleep(0)

    run_main(server(), loop)
    assert ended == [1]
