"""What people watch: how much waits, what runs, who is there. Every number is bounded by an index or a limit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog

MOST = 10_000
"""Where counting stops."""
WINDOW = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Totals; `completed`, `failed` and `other` ended within the last minute."""

    now: datetime
    ready: int
    delayed: int
    pending: int
    in_progress: int
    dead_letters: int
    completed: int
    failed: int
    other: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneLevel:
    group_name: str
    train: str
    waiting: int
    oldest: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLevel:
    name: str
    enabled: bool
    priority: int
    cap: int | None
    active: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLevel:
    id: int
    train: str
    manifest: str | None
    state: str
    host: str | None
    attempt: int
    age: timedelta
    junction: str | None


class Gauging:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def levels(self, conn: Connection, *, now: datetime | None) -> Levels:
        row = await self._sql["doctor/gauges"].fetchrow(conn, most=MOST, window=WINDOW, now=now)
        if row is None:
            raise AssertionError("a statement that always answers a row answered none")
        return Levels(**dict(row))

    async def lanes(self, conn: Connection, *, now: datetime | None) -> list[LaneLevel]:
        return [LaneLevel(**dict(row)) for row in await self._sql["doctor/lanes"].fetch(conn, most=MOST, now=now)]

    async def groups(self, conn: Connection) -> list[GroupLevel]:
        return [GroupLevel(**dict(row)) for row in await self._sql["doctor/groups"].fetch(conn)]

    async def running(self, conn: Connection, *, now: datetime | None) -> list[RunLevel]:
        return [RunLevel(**dict(row)) for row in await self._sql["doctor/running"].fetch(conn, now=now)]
