"""Hooks: who hears of the end of a run once it is written. Whatever a hook does, the worker goes on.

They run beside the worker, a few at once. What waits for them counts as unsettled, so a worker whose hooks are slower
than its trains claims more slowly instead of growing without limit.
"""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from interlock.observe.context import enter
from interlock.observe.events.work import HookFailed
from interlock.trains.finished import FinishedRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from interlock.model.outcome import Ended, Ending
    from interlock.observe.bus import Emit
    from interlock.trains.finished import Hook
    from interlock.trains.train import Train
    from interlock.worker.extensions import Extensions
    from interlock.worker.job import Job

AT_ONCE = 20


class Hooks:
    """`hear_success` and `hear_failure` say whether anybody would, so that nothing is prepared for nobody."""

    def __init__(self, extensions: Extensions, trains: Iterable[Train[..., Any, Any]], *, emit: Emit) -> None:
        self._on_success, self._on_failure = tuple(extensions.on_success), tuple(extensions.on_failure)
        options = [train.options for train in trains]
        self.hear_success = bool(self._on_success) or any(one.on_success for one in options)
        self.hear_failure = bool(self._on_failure) or any(one.on_failure for one in options)
        self._emit = emit
        self._running: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(AT_ONCE)
        self._on_ended: Callable[[], None] = lambda: None

    def on_ended(self, listener: Callable[[], None]) -> None:
        """Call this whenever fewer wait than before."""
        self._on_ended = listener

    @property
    def waiting(self) -> int:
        return len(self._running)

    def succeeded(self, job: Job) -> None:
        own = job.declaration.options.on_success
        self._begin(job, "on_success", (own, *self._on_success) if own else self._on_success, {})

    def failed(self, job: Job, ending: Ending, ended: Ended | None) -> None:
        own = job.declaration.options.on_failure
        found = {
            "error": job.error,
            "error_type": ending.error_type,
            "error_message": ending.error_message,
            "retry_in": None if ended is None else ended.retry_in,
            "dead_letter_id": None if ended is None else ended.dead_letter_id,
        }
        self._begin(job, "on_failure", (own, *self._on_failure) if own else self._on_failure, found)

    async def finished(self) -> None:
        """Until nobody is left who hears of something."""
        while self._running:
            await asyncio.wait(self._running)

    async def aclose(self) -> None:
        """Nobody waits any more for those that still run."""
        for task in self._running:
            task.cancel()
        await self.finished()

    def _begin(self, job: Job, occasion: str, hooks: tuple[Hook, ...], found: dict[str, Any]) -> None:
        if not hooks:
            return
        found["took"] = timedelta(seconds=time.monotonic() - job.started)
        task = asyncio.create_task(self._call_all(job, occasion, hooks, found), name=occasion)
        self._running.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._on_ended()

    async def _call_all(self, job: Job, occasion: str, hooks: tuple[Hook, ...], found: dict[str, Any]) -> None:
        enter(job)
        async with self._room:
            for hook in hooks:
                try:
                    await hook(_finished(job, occasion, found))
                except asyncio.CancelledError:
                    raise
                except BaseException as error:  # noqa: BLE001  SystemExit in a hook must not end the server either
                    self._emit(HookFailed(occasion=occasion, hook=_name(hook), error=error, **job.about()))


def _finished(job: Job, occasion: str, found: dict[str, Any]) -> FinishedRun:
    if occasion == "on_success":
        return FinishedRun(output=job.declaration.signature.decode_output(job.output), **job.about(), **found)
    return FinishedRun(**job.about(), **found)


def _name(hook: Hook) -> str:
    return getattr(hook, "__qualname__", type(hook).__qualname__)
