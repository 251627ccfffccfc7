"""What has ended long ago goes, in small batches, on every server at once: deleting what is deleted harms nobody.

Each kind has a transaction of its own, takes rows that nobody holds and waits for none. What is queued, pending or in
progress is never among them, nor is the last success of a manifest, nor an entry that holds a key.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from interlock.observe.events.upkeep import HistoryForgotten
from interlock.runtime.clock import DatabaseClock
from interlock.runtime.loop import IMMEDIATELY
from interlock.store.rehearse import rehearse
from interlock.store.retention import OldRows
from interlock.upkeep.forgotten import Forgotten

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from interlock.observe.bus import Emit
    from interlock.runtime.clock import Clock
    from interlock.store.connection import Connection
    from interlock.store.database import Database
    from interlock.upkeep.settings import UpkeepSettings

ENTRIES_STAY = timedelta(hours=1)
"""Longer than any transaction lives that could still try to write the same fire again."""
TRAINS_STAY = timedelta(days=30)
WHOLE_EVERY = timedelta(hours=1)
"""What had to stay and may go by now, such as a success that has a later one, waits for that at most."""
OVERLAP = timedelta(minutes=1)


Witness: TypeAlias = "Callable[[Connection, Forgotten], Awaitable[None]]"


async def _nobody(_: Connection, __: Forgotten) -> None:
    """What servers delete by themselves is in no audit."""


class Retention:
    name = "retention"

    def __init__(
        self, database: Database, settings: UpkeepSettings, *, emit: Emit = lambda _: None, clock: Clock | None = None
    ) -> None:
        self._database, self._settings = database, settings
        self._emit, self._clock = emit, clock or DatabaseClock()
        self._old = OldRows(database.sql)
        self._emptied_at: float | None = None
        self._whole_at: float | None = None

    async def tick(self) -> timedelta:
        forgotten = await self.step()
        return IMMEDIATELY if forgotten.fills(self._settings.cleanup_batch) else self._settings.cleanup_interval

    async def step(self) -> Forgotten:
        """One batch of each kind; answers what went."""
        return await self._forget(self._settings.cleanup_batch)

    async def run(self, witness: Witness = _nobody) -> Forgotten:
        """Batch after batch, until nothing is left that may go; a witness sees each in its transaction."""
        limit, forgotten = self._settings.cleanup_batch, Forgotten()
        while True:
            batch = await self._forget(limit, witness)
            forgotten += batch
            if not batch.fills(limit):
                return forgotten

    async def rehearse(self, most: int) -> Forgotten:
        """What would go now, counted up to `most` rows of a kind; nothing of it goes."""
        forgotten = Forgotten()
        for step in self._steps(most, window=None):
            forgotten += await rehearse(self._database, step)
        return forgotten

    async def _forget(self, limit: int, witness: Witness = _nobody) -> Forgotten:
        began, window, forgotten = self._clock.monotonic(), self._window(), Forgotten()
        for step in self._steps(limit, window):
            async with self._database.tick() as conn:
                batch = await step(conn)
                await witness(conn, batch)
            forgotten += batch
        if forgotten.rows["executions"] < limit:
            self._emptied_at = began
            self._whole_at = began if window is None else self._whole_at
        if forgotten:
            self._emit(HistoryForgotten(**forgotten.rows))
        return forgotten

    def _steps(self, limit: int, window: timedelta | None) -> Sequence[Callable[[Connection], Awaitable[Forgotten]]]:
        steps = (
            partial(self._executions, window),
            self._entries,
            self._dead_letters,
            self._acts,
            self._jobs,
            self._servers,
            self._declarations,
        )
        return [partial(step, limit) for step in steps]

    async def _executions(self, window: timedelta | None, limit: int, conn: Connection) -> Forgotten:
        trains = await self._old.forget_executions(
            conn,
            older_than=self._settings.execution_retention,
            limit=limit,
            now=self._clock.injected(),
            window=window,
        )
        return Forgotten(Counter(executions=trains.total()), trains)

    def _window(self) -> timedelta | None:
        """How far back to look; None: from the beginning.

        Behind a look that left nothing, only what had to stay is older. There may be a million last successes of
        manifests that rarely run, so they are looked at again now and then, and not in every pass.
        """
        now, emptied, whole = self._clock.monotonic(), self._emptied_at, self._whole_at
        if emptied is None or whole is None or self._clock.injected() is not None:
            return None
        return None if now - whole > WHOLE_EVERY.total_seconds() else timedelta(seconds=now - emptied) + OVERLAP

    async def _entries(self, limit: int, conn: Connection) -> Forgotten:
        count = await self._old.forget_entries(conn, older_than=ENTRIES_STAY, limit=limit, now=self._clock.injected())
        return Forgotten(Counter(entries=count))

    async def _dead_letters(self, limit: int, conn: Connection) -> Forgotten:
        count = await self._old.forget_dead_letters(
            conn, older_than=self._settings.dead_letter_retention, limit=limit, now=self._clock.injected()
        )
        return Forgotten(Counter(dead_letters=count))

    async def _acts(self, limit: int, conn: Connection) -> Forgotten:
        older_than = self._settings.audit_retention
        if older_than is None:
            return Forgotten()
        count = await self._old.forget_acts(conn, older_than=older_than, limit=limit, now=self._clock.injected())
        return Forgotten(Counter(acts=count))

    async def _jobs(self, limit: int, conn: Connection) -> Forgotten:
        return Forgotten(Counter(orphaned_jobs=await self._old.forget_orphaned_jobs(conn, limit=limit)))

    async def _servers(self, limit: int, conn: Connection) -> Forgotten:
        older_than = self._settings.execution_retention
        return Forgotten(Counter(servers=await self._old.forget_servers(conn, older_than=older_than, limit=limit)))

    async def _declarations(self, _: int, conn: Connection) -> Forgotten:
        trains, groups = await self._old.forget_declarations(conn, older_than=TRAINS_STAY)
        return Forgotten(Counter(trains=trains, groups=groups))
