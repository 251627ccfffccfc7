"""One run of a timer: its body, its time limit and its tries.

The limit on the run is not the lease: the lease is short and renewed, so that a crash frees the slot in seconds, while
the limit says how long a run may take at all. A plain function runs in a thread and cannot be stopped: it keeps its
slot until it returns, because a slot given back too early would let two of them run.
"""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from interlock.observe.events.timer import TimerOverran, TimerRetried
from interlock.runtime.in_thread import in_own_thread

if TYPE_CHECKING:
    from interlock.observe.bus import Emit
    from interlock.timers.timer import Timer

FIRST_RETRY, LONGEST_RETRY = 1.0, 30.0


class Overrun(Exception):
    """The run took longer than it may and was cancelled."""


class ThreadLeftBehind(asyncio.CancelledError):
    """The run was cancelled while its thread goes on: its slot must not be given back yet."""

    def __init__(self, *args: object, thread: asyncio.Future[Any]) -> None:
        super().__init__(*args)
        self.thread = thread


async def run_body(timer: Timer, emit: Emit) -> None:
    """Until the body has succeeded, failed for good or used up its time."""
    try:
        async with asyncio.timeout(None) as limit:
            await _Run(timer, emit, limit).until_done()
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise Overrun from error


class _Run:
    def __init__(self, timer: Timer, emit: Emit, limit: asyncio.Timeout) -> None:
        self._timer, self._emit, self._limit = timer, emit, limit
        self._in_thread = self._overran = False

    async def until_done(self) -> None:
        handle = asyncio.get_running_loop().call_later(self._timer.max_run_time.total_seconds(), self._take_too_long)
        try:
            await self._tries()
        finally:
            handle.cancel()

    def _take_too_long(self) -> None:
        self._overran = True
        cancelled = self._timer.overrun == "cancel" and not self._in_thread
        self._emit(TimerOverran(timer=self._timer.name, max_run_time=self._timer.max_run_time, cancelled=cancelled))
        if cancelled:
            self._limit.reschedule(asyncio.get_running_loop().time())

    async def _tries(self) -> None:
        pause = FIRST_RETRY
        while True:
            try:
                await self._try()
            except Exception as error:
                if not self._timer.retry_on_error or self._overran:
                    raise
                self._emit(TimerRetried(timer=self._timer.name, error=error, retry_in=timedelta(seconds=pause)))
            else:
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_RETRY)

    async def _try(self) -> None:
        if self._timer.is_async:
            await self._timer.body()
            return
        output = await self._in_a_thread()
        # A lambda or a plain wrapper around an async function hands back its coroutine.
        if inspect.isawaitable(output):
            if self._overran and self._timer.overrun == "cancel":
                self._limit.reschedule(asyncio.get_running_loop().time())
            await output

    async def _in_a_thread(self) -> Any:
        thread = in_own_thread(self._timer.body, f"interlock timer {self._timer.name}")
        self._in_thread = True
        try:
            return await asyncio.shield(thread)
        except asyncio.CancelledError as cancelled:
            if not thread.done():
                thread.add_done_callback(_forget)
                raise ThreadLeftBehind(*cancelled.args, thread=thread) from cancelled
            raise
        finally:
            self._in_thread = False


def _forget(thread: asyncio.Future[Any]) -> None:
    with suppress(BaseException):
        thread.exception()
