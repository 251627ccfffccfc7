"""The one loop: wait, tick, and start over.

A tick does one batch and answers how long to sleep. A notice counts from the moment the previous tick *began*: the mark
is cleared before a tick and never after it, so what arrives while a tick runs makes the next one follow at once. A tick
that raises is tried again after a growing pause. A notice does not cut it short (a failing database would be hammered
at the rate of its notices), and it stays so small that every loop works again within seconds of the database's return.
"""

from __future__ import annotations

import asyncio
import random as random_numbers
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.observe.events.loop import LoopFailed, LoopRecovered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from interlock.observe.bus import Emit

IMMEDIATELY = timedelta(0)

_MOST_DOUBLINGS = 60  # beyond any maximum; keeps the power within what a float can hold


@dataclass(frozen=True, kw_only=True)
class LoopBackoff:
    """How long to pause after the n-th failure in a row; jitter only ever shortens the pause."""

    first: timedelta = timedelta(seconds=0.1)
    factor: float = 2.0
    max: timedelta = timedelta(seconds=2)
    jitter: float = 0.5

    def pause(self, failures: int, random: Callable[[], float]) -> timedelta:
        grown = self.first.total_seconds() * self.factor ** min(failures - 1, _MOST_DOUBLINGS)
        longest = min(grown, self.max.total_seconds())
        return timedelta(seconds=longest * (1 - self.jitter * random()))


class Alarm:
    """An event that one coroutine waits for and any thread may set, also before anybody waits."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._set = False
        self._home: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        # First the mark, then the look for a waiter; `wait` does it the other way round, so one of them sees the other.
        self._set = True
        if self._home is None:
            return
        if self._thread == threading.get_ident():
            self._event.set()
        else:
            with suppress(RuntimeError):  # the event loop is closed: nobody waits any more
                self._home.call_soon_threadsafe(self._ring)

    def clear(self) -> None:
        self._set = False
        self._event.clear()

    async def wait(self, limit: timedelta | None = None) -> None:
        """Until it is set or the limit has passed; other tasks get a turn even if there is nothing to wait for."""
        self._thread = threading.get_ident()
        self._home = asyncio.get_running_loop()
        if self._set or (limit is not None and limit <= IMMEDIATELY):
            await asyncio.sleep(0)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(None if limit is None else limit.total_seconds()):
                await self._event.wait()

    def _ring(self) -> None:
        if self._set:
            self._event.set()


class Loop:
    """Calls `tick` again and again, until it is stopped."""

    def __init__(
        self,
        name: str,
        tick: Callable[[], Awaitable[timedelta]],
        *,
        emit: Emit,
        first_delay: timedelta = IMMEDIATELY,
        backoff: LoopBackoff = LoopBackoff(),
        random: Callable[[], float] = random_numbers.random,
    ) -> None:
        self.name = name
        self.ticks = 0
        self.failures = 0
        self.last_tick_at: float | None = None
        self._tick, self._emit = tick, emit
        self._first_delay, self._backoff, self._random = first_delay, backoff, random
        self._woken, self._stopped = Alarm(), Alarm()
        self._kinds: Counter[type[Exception]] = Counter()
        self._failing_since = 0.0

    @property
    def is_woken(self) -> bool:
        """Whether the next tick follows at once anyway."""
        return self._woken.is_set()

    def wake(self) -> None:
        """Tick at once, or once more if a tick is running; from any thread."""
        self._woken.set()

    def stop(self) -> None:
        """Begin no further tick; a sleep ends now, a running tick may finish. From any thread."""
        self._stopped.set()
        self._woken.set()

    async def run(self) -> None:
        """Tick until stopped; `ticks`, `failures` (in a row) and `last_tick_at` (monotonic) tell how healthy it is."""
        await self._woken.wait(self._first_delay)
        while not self._is_stopped():
            await self._woken.wait(await self._tick_or_back_off())

    def _is_stopped(self) -> bool:
        """Cleared first and looked at next, so that a thread that stops it in between is not overlooked."""
        self._woken.clear()
        return self._stopped.is_set()

    async def _tick_or_back_off(self) -> timedelta:
        try:
            delay = max(await self._tick(), IMMEDIATELY)
        except Exception as error:  # noqa: BLE001  a loop outlives whatever its tick raises
            await self._stopped.wait(self._failed(error))
            return IMMEDIATELY
        self._succeeded()
        return delay

    def _failed(self, error: Exception) -> timedelta:
        if self.failures == 0:
            self._failing_since = time.monotonic()
        self.failures += 1
        # Counted per kind: another kind of failure in the middle of an outage is news.
        self._kinds[type(error)] += 1
        pause = self._backoff.pause(self.failures, self._random)
        self._emit(LoopFailed(loop=self.name, error=error, retry_in=pause, consecutive=self._kinds[type(error)]))
        return pause

    def _succeeded(self) -> None:
        self.ticks += 1
        self.last_tick_at = time.monotonic()
        if self.failures:
            after = timedelta(seconds=self.last_tick_at - self._failing_since)
            self._emit(LoopRecovered(loop=self.name, failures=self.failures, after=after))
            self.failures = 0
            self._kinds.clear()
