"""Starts the components of a server in order, watches them, and stops them in reverse.

Each component runs in a task that the supervisor owns. To stop, a component is asked to, may finish what it has in hand
until a deadline that all share, and is cancelled then; it cleans up in its own `finally`, which has a time limit too.
The last one started is the first one stopped, so what a component relies on outlives it. One that ends although nobody
asked it to stops the server with its error.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from interlock.errors import ComponentEnded
from interlock.observe.events.loop import ComponentAbandoned, ComponentFailed, Draining, Stopped
from interlock.runtime import last_resort
from interlock.runtime.loop import Alarm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from interlock.observe.bus import Emit
    from interlock.runtime.loop import Loop

FORCING = 2  # the signal that does so
_FORCED_CLEANUP = timedelta(seconds=0.5)


class Component(Protocol):
    """A part of a running server. It may also have `busy() -> int`: how many jobs it would wait for, and `draining()`:
    told, before anything is stopped, that the server takes nothing new; answers at once.
    """

    @property
    def name(self) -> str: ...

    async def start(self) -> None:
        """Get ready; what is started later relies on it. If it raises, it holds nothing."""

    async def run(self) -> None:
        """Work until `stop` is called, finish what is in hand, clean up, return; cancelled if that takes too long."""

    def stop(self) -> None:
        """Take nothing new; answers at once."""


class LoopComponent:
    """A loop that the supervisor runs."""

    def __init__(self, loop: Loop, *, busy: Callable[[], int] = lambda: 0) -> None:
        self.name, self.run, self.stop, self.busy = loop.name, loop.run, loop.stop, busy

    async def start(self) -> None:
        """Nothing to prepare."""


@dataclass(eq=False)
class _Member:
    component: Component
    task: asyncio.Task[None]
    asked: bool = False


class Supervisor:
    def __init__(
        self,
        components: Sequence[Component],
        *,
        emit: Emit,
        shutdown_timeout: timedelta = timedelta(seconds=30),
        cleanup_timeout: timedelta = timedelta(seconds=5),
    ) -> None:
        self._components, self._emit = components, emit
        self._shutdown_timeout, self._cleanup_timeout = shutdown_timeout, cleanup_timeout
        self._members: list[_Member] = []
        self._stop_wanted, self._force_wanted = Alarm(), Alarm()
        self._stopping: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self._signals = 0

    @property
    def forced(self) -> bool:
        """Whether running work was cut off on request, before the deadline."""
        return self._force_wanted.is_set()

    def request_stop(self) -> None:
        """Drain and stop; from any thread."""
        self._stop_wanted.set()

    def force(self) -> None:
        """Stop without waiting for running work; from any thread."""
        self._force_wanted.set()
        self._stop_wanted.set()

    async def run_until_stopped(self) -> None:
        """Start everything and serve until a stop is requested or a component dies; raises the error it died of."""
        await self.start()
        try:
            await self._stop_wanted.wait()
        finally:
            await self.stop()

    async def start(self) -> None:
        """Start in order. If one fails, those before it are stopped in reverse and its error is raised."""
        try:
            for component in self._components:
                await self._start(component)
            self._raise_what_died()
        except BaseException:
            await self._stop_all()
            raise

    async def stop(self) -> None:
        """Drain in reverse order until the deadline, then cancel; raises the first error that a component died of."""
        await self._stop_all()
        self._raise_what_died()

    @contextmanager
    def handle_signals(self) -> Iterator[None]:
        """Inside the block the first SIGTERM or SIGINT drains and the second forces, also where a body blocks the event
        loop; only in the main thread.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = self._take_signals(asyncio.get_running_loop())
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
            if self._signals >= FORCING:
                last_resort.call_off()

    def _take_signals(self, loop: asyncio.AbstractEventLoop) -> dict[signal.Signals, Any]:
        # Threadsafe although it is the same thread: only that wakes an event loop that waits for input.
        def handler(*_: object) -> None:
            self._signals += 1
            if self._signals == FORCING:
                last_resort.end_in(last_resort.BLOCKED)
            loop.call_soon_threadsafe(self._signalled)

        return {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}

    def _signalled(self) -> None:
        if self._signals < FORCING:
            self.request_stop()
        elif not self.forced:
            last_resort.end_in(last_resort.SLOW)
            self.force()

    async def _start(self, component: Component) -> None:
        if self._stop_wanted.is_set():
            return
        starting = asyncio.create_task(component.start(), name=f"start {component.name}")
        try:
            await _until_done(starting, unless=self._stop_wanted)
        finally:
            if not starting.done():
                await self._cancel(component.name, starting)
        if not starting.done() or (starting.cancelled() and self._stop_wanted.is_set()):
            return
        if starting.cancelled():
            raise ComponentEnded(component=component.name)
        starting.result()
        self._run(component)

    def _run(self, component: Component) -> None:
        member = _Member(component, asyncio.create_task(component.run(), name=component.name))
        self._members.append(member)
        member.task.add_done_callback(lambda _: self._ended(member))

    def _ended(self, member: _Member) -> None:
        error = None if member.task.cancelled() else member.task.exception()
        if error is None and not member.asked:
            error = ComponentEnded(component=member.component.name)
        if error is not None:
            self._failed(member, error)

    def _failed(self, member: _Member, error: BaseException) -> None:
        self._error = self._error or error
        self._emit(ComponentFailed(component=member.component.name, error=error))
        self._stop_wanted.set()

    def _raise_what_died(self) -> None:
        if self._error is not None:
            raise self._error

    async def _stop_all(self) -> None:
        """Once, however often it is asked for; a caller that is cancelled meanwhile forces it and still waits."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._drain(), name="drain")
        cancelled: asyncio.CancelledError | None = None
        while not self._stopping.done():
            try:
                await asyncio.shield(self._stopping)
            except asyncio.CancelledError as request:
                self.force()
                cancelled = request
        if cancelled is not None:
            raise cancelled

    async def _drain(self) -> None:
        began = time.monotonic()
        jobs = sum(getattr(member.component, "busy", lambda: 0)() for member in self._members)
        self._emit(Draining(jobs=jobs, timeout=self._shutdown_timeout))
        for member in self._members:
            getattr(member.component, "draining", lambda: None)()
        while self._members:
            left = self._shutdown_timeout - timedelta(seconds=time.monotonic() - began)
            await self._end(self._members.pop(), left)
        self._emit(Stopped(took=timedelta(seconds=time.monotonic() - began), forced=self.forced))

    async def _end(self, member: _Member, left: timedelta) -> None:
        member.asked = True
        try:
            member.component.stop()
        except Exception as error:  # noqa: BLE001  the others are stopped all the same
            self._failed(member, error)
            left = timedelta(0)
        await _until_done(member.task, unless=self._force_wanted, limit=left)
        if not member.task.done():
            await self._cancel(member.component.name, member.task)

    async def _cancel(self, name: str, task: asyncio.Task[None]) -> None:
        task.cancel()
        await _until_done(task, unless=self._force_wanted, limit=self._cleanup_timeout)
        if not task.done() and self.forced:
            await asyncio.wait({task}, timeout=_FORCED_CLEANUP.total_seconds())
        if not task.done():
            self._emit(ComponentAbandoned(component=name))


async def _until_done(task: asyncio.Task[None], *, unless: Alarm, limit: timedelta | None = None) -> None:
    """Until the task is done, the alarm is set or the limit has passed; the task itself is left alone."""
    alarm = asyncio.create_task(unless.wait(limit))
    try:
        await asyncio.wait({task, alarm}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        alarm.cancel()
