"""The event loop of a server that has the process to itself.

What a train starts beside itself runs in the loop of the server. asyncio ends the loop when any task raises SystemExit,
and at the end it waits for every task, however long that takes. Here the first is the end of that task alone (whoever
awaits it meets the SystemExit), and a task that does not heed its cancellation is left behind after a moment.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

LAST_MOMENT = 1.0  # seconds for tasks that nobody waited for


def run_main(main: Coroutine[Any, Any, T], loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> T:
    """Run this, and nothing beyond its end."""
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        try:
            return _outlasting(runner, main)
        finally:
            runner.get_loop().run_until_complete(_leave_behind_what_stays())


def _outlasting(runner: asyncio.Runner, main: Coroutine[Any, Any, T]) -> T:
    task: asyncio.Task[T] | None = None

    async def begin() -> T:
        nonlocal task
        task = asyncio.current_task()
        return await main

    try:
        return runner.run(begin())
    except SystemExit:
        if task is None:
            raise
        while not task.done():
            with suppress(SystemExit):
                runner.get_loop().run_until_complete(task)
        return task.result()


async def _leave_behind_what_stays() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        _, staying = await asyncio.wait(others, timeout=LAST_MOMENT)
        for task in staying:
            asyncio._unregister_task(task)  # noqa: SLF001  the one way not to be waited for; documented for loops
