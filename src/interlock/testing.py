"""What users need to test their own code: time that they can move, and a server that moves only when it is told to.

async with stepper(app) as step:
    await step.tick("manifests")
    step.advance(timedelta(hours=3))
    await step.drain()
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from interlock.errors import InvalidOption
from interlock.runtime.clock import FakeClock
from interlock.store.standing import Standing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
    from datetime import datetime, timedelta

    from interlock.app import Interlock
    from interlock.store.database import Database

__all__ = ["FakeClock", "Stepper", "stepper"]

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


@asynccontextmanager
async def stepper(
    app: Interlock, *, start: datetime | None = None, inline: bool = False
) -> AsyncGenerator[Stepper, None]:
    """A registered server of the app, its declarations seeded, in which nothing runs by itself.

    Time stands still at `start`, by default the present. With `inline` what a tick of `dispatch` hands over has run
    when the tick ends. The app is closed at the end of the block.
    """
    database = await app.adatabase()
    clock = FakeClock(start if start is not None else await _present(database))
    async with app.stepping(clock, inline=inline) as ticks:
        yield Stepper(clock, ticks, database, drained=_drained(app))


def _drained(app: Interlock) -> set[str]:
    delivers = app.settings.outbox.outbox_enabled and len(app.outbox.emitters) > 0
    return set(DRAINS_IN_ORDER) if delivers else set(DRAINS_IN_ORDER) - {"outbox"}


async def _present(database: Database) -> datetime:
    async with database.connection() as conn:
        return await Standing(database.sql).present(conn)
