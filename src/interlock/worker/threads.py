"""Threads for plain functions: as many as there are slots, started when needed, and never in the way of an exit.

The standard executor makes the interpreter wait at its end for every thread. A train that ignores its cancellation
would hold up a deploy for as long as it likes, although its job was handed back already.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Work = tuple[Callable[[], Any], contextvars.Context, asyncio.Future[Any]]


class Threads:
    """Its methods are called from one event loop."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
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
        """End the idle threads, and each busy one when its function returns."""
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join(0.05)
        self._threads.clear()

    def _start(self) -> None:
        name = f"interlock-worker-{len(self._threads)}"
        thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            _run(*work)
            del work  # an idle thread must not keep the last input and output alive
            self._idle.release()


def _run(function: Callable[[], Any], context: contextvars.Context, future: asyncio.Future[Any]) -> None:
    try:
        output = context.run(function)
    except BaseException as error:  # noqa: BLE001  SystemExit ends the run, not the worker
        _answer(future, future.set_exception, error)
    else:
        _answer(future, future.set_result, output)


def _answer(future: asyncio.Future[Any], settle: Callable[[Any], None], value: Any) -> None:
    def unless_done() -> None:
        if not future.done():
            settle(value)

    with suppress(RuntimeError):  # the event loop is closed: nobody waits any more
        future.get_loop().call_soon_threadsafe(unless_done)
