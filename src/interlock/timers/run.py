"""One run of a timer: its body, its time limit and its tries.

The limit on the run is not the lease: the lease is short and renewed, so that a crash frees the slot in seconds, while
the limit says how long a run may take at all. A plain function runs in a thread and cannot be stopped: it keeps its
slot until it returns, because a slot given back too early would let two of them run.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from interlock.observe.events.timer import TimerOverran, TimerRetried

if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.observe.bus import Emit
    from interlock.timers.timer import Timer

FIRST_RETRY, LONGEST_RETRY = 1.0, 30.0


class Overrun(Exception):
    """The run took longer than it may and was cancelled."""


class ThreadLeftBehind(asyncio.CancelledError):
    """The run was cancelled while its thread goes on: its slot must not be given back yet."""


async def run_body(timer: Timer, emit: Emit) -> None:
    """Until the body has succeeded, failed for good or used up its time."""
    if timer.is_async and timer.overrun == "cancel":
        await _within_limit(timer, emit)
    else:
        await _watched(timer, emit)


async def _within_limit(timer: Timer, emit: Emit) -> None:
    try:
        async with asyncio.timeout(timer.max_run_time.total_seconds()) as limit:
            await _tries(timer, emit, lambda: False)
    except TimeoutError as error:
        if not limit.expired():
            raise
        emit(TimerOverran(timer=timer.name, max_run_time=timer.max_run_time, cancelled=True))
        raise Overrun from error


async def _watched(timer: Timer, emit: Emit) -> None:
    """Too long a run is told, and not tried again, but left to end by itself."""
    overran = False

    def tell() -> None:
        nonlocal overran
        overran = True
        emit(TimerOverran(timer=timer.name, max_run_time=timer.max_run_time, cancelled=False))

    handle = asyncio.get_running_loop().call_later(timer.max_run_time.total_seconds(), tell)
    try:
        await _tries(timer, emit, lambda: overran)
    finally:
        handle.cancel()


async def _tries(timer: Timer, emit: Emit, too_late: Callable[[], bool]) -> None:
    pause = FIRST_RETRY
    while True:
        try:
            await _call(timer)
        except Exception as error:
            if not timer.retry_on_error or too_late():
                raise
            emit(TimerRetried(timer=timer.name, error=error, retry_in=timedelta(seconds=pause)))
        else:
            return
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_RETRY)


async def _call(timer: Timer) -> None:
    if timer.is_async:
        await timer.body()
        return
    thread: asyncio.Future[Any] = asyncio.ensure_future(asyncio.to_thread(timer.body))
    try:
        await asyncio.shield(thread)
    except asyncio.CancelledError as cancelled:
        if not thread.done():
            thread.add_done_callback(_forget)
            raise ThreadLeftBehind(*cancelled.args) from cancelled
        raise


def _forget(thread: asyncio.Future[Any]) -> None:
    with suppress(BaseException):
        thread.exception()
