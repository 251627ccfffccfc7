"""The recovery tick: whose server is lost, and what it held. Runs on every server, whatever its roles.

Two short transactions. The first marks servers whose lease expired, and ends the ticks of stopped processes that
PostgreSQL does not end. The second closes what ended servers still hold, and queues it again at once, in its old place.
It looks at servers that ended a while ago too, because whoever marked them may have died before the second; after a
start, and once a minute, it looks at all of them.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from interlock import failpoints
from interlock.model.lifecycle import ExecutionState
from interlock.model.outcome import WORKER_LOST, Ending
from interlock.observe.events.server import ServerLost
from interlock.observe.events.work import ExecutionRecovered
from interlock.runtime.loop import IMMEDIATELY
from interlock.store.execution import Executions
from interlock.store.server import Servers
from interlock.worker.report import announce

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from uuid import UUID

    from interlock.model.execution import Abandoned
    from interlock.model.outcome import Ended
    from interlock.observe.bus import Emit
    from interlock.store.database import Database

BATCH = 500
LATELY = timedelta(minutes=2)
EVER = timedelta(days=3650)
LOOK_AT_ALL_EVERY = 60.0


class Recovered(NamedTuple):
    """How many servers were found lost, and how many executions of ended servers were closed."""

    servers: int = 0
    executions: int = 0


class Recovery:
    name = "recovery"

    def __init__(
        self,
        database: Database,
        *,
        judge: Callable[[], UUID | None],
        interval: timedelta,
        emit: Emit,
        notify: Callable[[str], None] = lambda _: None,
        now: Callable[[], datetime | None] = lambda: None,
    ) -> None:
        self._database, self._judge, self._interval, self._emit = database, judge, interval, emit
        self._notify, self._now = notify, now
        self._servers, self._executions = Servers(database.sql), Executions(database.sql)
        self._looked_at_all = float("-inf")

    async def tick(self) -> timedelta:
        return IMMEDIATELY if (await self.step()).executions == BATCH else self._interval

    async def step(self) -> Recovered:
        """What a tick does; answers what it found."""
        judge = self._judge()
        if judge is None:
            return Recovered()
        servers = await self._mark_lost(judge)
        await failpoints.reach("recovery.marked")
        return Recovered(servers, await self._recover())

    async def _mark_lost(self, judge: UUID) -> int:
        """How many servers were found lost."""
        async with self._database.tick() as conn:
            await self._database.end_stalled_ticks(conn)
            lost = await self._servers.mark_lost(conn, judge)
        for server in lost:
            self._emit(ServerLost(server=server.id, name=server.name, by=judge))
        return len(lost)

    async def _recover(self) -> int:
        """How many executions of ended servers were closed."""
        began = time.monotonic()
        look_at_all = began - self._looked_at_all > LOOK_AT_ALL_EVERY
        async with self._database.connection() as conn, self._database.tick_on(conn, by_index=True):
            found = await self._executions.lock_lost(conn, within=EVER if look_at_all else LATELY, limit=BATCH)
            await failpoints.reach("recovery.found")
            ended = await self._executions.end(conn, [_lost(one) for one in found], now=self._now())
        if look_at_all and len(found) < BATCH:
            self._looked_at_all = began
        self._tell(found, ended)
        return len(found)

    def _tell(self, found: Sequence[Abandoned], ended: Sequence[Ended]) -> None:
        servers = {one.execution_id: one.server_id for one in found}
        for one in ended:
            if one.retry_entry_id is not None:
                self._emit(_recovered(one, servers[one.execution_id]))
        announce(self._notify, self._emit, ended)
        if ended:
            self._notify("work")  # also of an end that queues nothing: its place under a cap is free


def _lost(one: Abandoned) -> Ending:
    message = f"its server {one.server_id} stopped answering"
    return Ending(one.execution_id, one.claim_token, ExecutionState.FAILED, failure=WORKER_LOST, error_message=message)


def _recovered(one: Ended, server: UUID) -> ExecutionRecovered:
    return ExecutionRecovered(
        execution_id=one.execution_id, train=one.train, manifest=one.manifest, attempt=one.attempt, server=server
    )
