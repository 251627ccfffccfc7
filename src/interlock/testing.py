"""What users need to test their own code: time that they can move, and a server that moves only when it is told to.

async with stepper(app) as step:
    await step.tick("manifests")
    step.advance(timedelta(hours=3))
    await step.drain()

In a test without an event loop it is `with stepper(app) as step:`, and nothing is awaited.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from interlock.errors import InvalidOption
from interlock.runtime.both_ways import BothWays
from interlock.runtime.clock import FakeClock
from interlock.runtime.portal import portal
from interlock.store.standing import Standing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
    from contextlib import AbstractAsyncContextManager
    from datetime import datetime, timedelta
    from types import TracebackType

    from interlock.app import Interlock
    from interlock.store.database import Database

__all__ = ["BlockingStepper", "FakeClock", "Stepper", "stepper"]

DRAINS_IN_ORDER = ("recovery", "manifests", "dispatch", "worker", "outbox")
MOST_ROUNDS = 10_000


class Stepper:
    """A server of the app whose roles tick when the test says so, at the time that the test says."""

    def __init__(
        self,
        clock: FakeClock,
        ticks: Mapping[str, Callable[[], Awaitable[Any]]],
        database: Database,
        *,
        drained: Collection[str] = DRAINS_IN_ORDER,
    ) -> None:
        self._clock, self._ticks, self._drained = clock, ticks, drained
        self._database, self._standing = database, Standing(database.sql)

    @property
    def now(self) -> datetime:
        return self._clock.now

    def advance(self, by: timedelta) -> datetime:
        """Move time forward; answers the new now. Nothing happens until a role ticks."""
        return self._clock.advance(by)

    async def tick(self, role: str) -> Any:
        """One tick of a role; answers its result record."""
        if role not in self._ticks:
            raise InvalidOption(option="role", found=role, expected="one of " + ", ".join(sorted(self._ticks)))
        return await self._ticks[role]()

    async def drain(self) -> int:
        """Tick until nothing is left to do at this time; answers how many rounds did something.

        A round is one tick each of `recovery`, `manifests`, `dispatch`, `worker` and, if the app has declared an
        emitter, `outbox`, in this order. `timers`, `sweep` and `retention` tick only when they are asked to: their work
        never ends, or hides what a test looks for. What waits for a later time, for a person or for a train that this
        app does not know stays where it is.
        """
        before = await self._look()
        for rounds in range(MOST_ROUNDS):
            claimed = await self._round()
            after = await self._look()
            if after == before and not claimed:
                return rounds
            before = after
        raise RuntimeError(f"there was still something to do after {MOST_ROUNDS} rounds; does a train enqueue itself?")

    async def _round(self) -> int:
        """Answers how many messages were claimed, of which `_look` sees nothing."""
        answers = {role: await self.tick(role) for role in DRAINS_IN_ORDER if role in self._drained}
        return answers["outbox"].claimed if "outbox" in answers else 0

    async def _look(self) -> tuple[Any, ...]:
        async with self._database.connection() as conn:
            return await self._standing.look(conn)


class BlockingStepper:
    """The same for a test without an event loop."""

    def __init__(self, step: Stepper) -> None:
        self._step = step

    @property
    def now(self) -> datetime:
        return self._step.now

    def advance(self, by: timedelta) -> datetime:
        """See `Stepper.advance`."""
        return self._step.advance(by)

    def tick(self, role: str) -> Any:
        """See `Stepper.tick`."""
        return portal.call(self._step.tick, role)

    def drain(self) -> int:
        """See `Stepper.drain`."""
        return portal.call(self._step.drain)


class _Block:
    def __init__(self, block: AbstractAsyncContextManager[Stepper]) -> None:
        self._block = BothWays(block)

    async def __aenter__(self) -> Stepper:
        return await self._block.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._block.__aexit__(kind, error, traceback)

    def __enter__(self) -> BlockingStepper:
        return BlockingStepper(self._block.__enter__())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return self._block.__exit__(kind, error, traceback)


def stepper(app: Interlock, *, start: datetime | None = None, inline: bool = False) -> _Block:
    """A registered server of the app, its declarations seeded, in which nothing runs by itself.

    For `async with` and `with`. Time stands still at `start`, by default the present. With `inline` what a tick of
    `dispatch` hands over has run when the tick ends, trains that are submitted elsewhere included. The app is closed at
    the end of the block.
    """
    return _Block(_stepping(app, start, inline=inline))


@asynccontextmanager
async def _stepping(app: Interlock, start: datetime | None, *, inline: bool) -> AsyncGenerator[Stepper, None]:
    clock = FakeClock(start if start is not None else await _present(await app.adatabase()))
    async with app.stepping(clock, inline=inline) as ticks:
        yield Stepper(clock, ticks, await app.adatabase(), drained=_drained(app))


def _drained(app: Interlock) -> set[str]:
    delivers = app.settings.outbox.outbox_enabled and len(app.outbox.emitters) > 0
    return set(DRAINS_IN_ORDER) if delivers else set(DRAINS_IN_ORDER) - {"outbox"}


async def _present(database: Database) -> datetime:
    async with database.connection() as conn:
        return await Standing(database.sql).present(conn)
