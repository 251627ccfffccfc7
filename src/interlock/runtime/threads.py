"""Threads for plain functions: as many as are needed up to a limit, and never in the way of an exit.

The standard executor has six threads on two cores, for everybody, and makes the interpreter wait at its end for every
one. What waits for a thread there runs out of its time, and a function that ignores its cancellation would hold up a
deploy for as long as it likes.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from interlock.runtime.in_thread import run_and_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    Work = tuple[Callable[[], Any], contextvars.Context, asyncio.Future[Any]]

A_MOMENT = 0.2


class Threads:
    """Its methods are called from one event loop."""

    def __init__(self, limit: int, name: str = "interlock-worker") -> None:
        self._limit, self._name = limit, name
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []

    def call(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """Run it in a thread, with the caller's context variables."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._work.put((function, contextvars.copy_context(), future))
        if not self._idle.acquire(blocking=False) and len(self._threads) < self._limit:
            self._start()
        return future

    def close(self) -> None:
        """End the idle threads, and each busy one when its function returns; however many are busy, the event loop
        stands still for no longer than a moment.
        """
        for _ in self._threads:
            self._work.put(None)
        until = time.monotonic() + A_MOMENT
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0))
        self._threads.clear()

    def _start(self) -> None:
        name = f"{self._name}-{len(self._threads)}"
        thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            run_and_answer(*work)
            del work  # an idle thread must not keep the last input and output alive
            self._idle.release()
