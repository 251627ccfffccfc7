"""What an examination of the database reads: settings and statistics of PostgreSQL, and the state of the fleet."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from interlock.observe.events.store import PollingFallback
from interlock.store.listen import NoticeHub

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from interlock.observe.events.base import Event
    from interlock.store.connection import Connection
    from interlock.store.database import Database
    from interlock.store.sql import Catalog

MOST = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """The PostgreSQL that answers, as one connection sees it."""

    version: int
    version_text: str
    max_connections: int
    autovacuum: bool
    read_only: bool
    backend: int
    username: str
    clock: datetime


@dataclass(frozen=True, slots=True)
class Bloat:
    table: str
    dead: int
    live: int
    last_autovacuum: datetime | None


@dataclass(frozen=True, slots=True)
class OldTransaction:
    what: str
    application: str
    state: str | None
    age: timedelta
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMember:
    name: str
    app: str | None
    version: str
    state: str
    roles: Sequence[str]
    slots: int
    started_at: datetime
    heartbeat_age: timedelta
    leased: bool
    silent: bool


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A lock name that live holders take for different numbers of slots."""

    name: str
    narrowest: int
    widest: int


@dataclass(frozen=True, slots=True)
class Orphans:
    jobs: int
    executions: int


class Checkup:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def instance(self, conn: Connection) -> Instance:
        row = await self._sql["doctor/instance"].fetchrow(conn)
        if row is None:
            raise AssertionError("a statement that always answers a row answered none")
        return Instance(**dict(row))

    async def skew(self, conn: Connection, *, wall: Callable[[], float] = time.time) -> timedelta:
        """How far the clock of this machine is ahead of the database's, beyond what the way there explains."""
        before = wall()
        clock = (await self.instance(conn)).clock
        after = wall()
        earliest, latest = (datetime.fromtimestamp(at, UTC) for at in (before, after))
        if earliest > clock:
            return earliest - clock
        return latest - clock if latest < clock else timedelta(0)

    async def privileges(self, conn: Connection) -> list[tuple[str, str]]:
        """What the user lacks, as object and privilege."""
        rows = await self._sql["doctor/privileges"].fetch(conn, schema=self._sql.schema)
        return [(row["object"], row["privilege"]) for row in rows]

    async def bloat(self, conn: Connection) -> list[Bloat]:
        return [Bloat(*row) for row in await self._sql["doctor/bloat"].fetch(conn, schema=self._sql.schema)]

    async def transactions(self, conn: Connection, *, older_than: timedelta) -> list[OldTransaction]:
        rows = await self._sql["doctor/transactions"].fetch(conn, older_than=older_than)
        return [OldTransaction(*row) for row in rows]

    async def fleet(self, conn: Connection) -> list[FleetMember]:
        """The servers that have not ended, those that do not answer any more included."""
        return [FleetMember(**dict(row)) for row in await self._sql["doctor/fleet"].fetch(conn)]

    async def orphans(self, conn: Connection) -> Orphans:
        row = await self._sql["doctor/orphans"].fetchrow(conn, most=MOST)
        return Orphans(0, 0) if row is None else Orphans(*row)

    async def disagreements(self, conn: Connection) -> list[Disagreement]:
        return [Disagreement(*row) for row in await self._sql["doctor/slots"].fetch(conn)]


async def notices_arrive(database: Database) -> bool:
    """Whether a notice that is sent here is heard here; behind a transaction pooler it is not."""
    said: list[Event] = []
    hub = NoticeHub(database, emit=said.append)
    try:
        await hub.tick()
    finally:
        await hub.close()
    return not any(isinstance(event, PollingFallback) for event in said)
