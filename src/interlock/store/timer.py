"""The `timer` table: timers as declared, the last tick somebody took, and totals for people."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from interlock.store.connection import Connection, Record
    from interlock.store.sql import Catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerDeclaration:
    name: str
    schedule: Mapping[str, object]
    max_concurrency: int
    runs_per_tick: int | None
    distributed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerTotals:
    """What happened on one server since it last said so."""

    name: str
    runs: int = 0
    failures: int = 0
    last_run_ago: timedelta | None = None
    skips: Mapping[str, int] = field(default_factory=dict)
    lock_down: bool = False
    """Whether the lock service did not answer when it was last asked for a slot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerRow:
    """A timer as the database knows it."""

    name: str
    app: str | None
    schedule: Mapping[str, Any]
    max_concurrency: int
    runs_per_tick: int | None
    distributed: bool
    tick_at: datetime | None
    tick_runs: int
    last_run_at: datetime | None
    last_host: str | None
    runs: int
    failures: int
    skips: Mapping[str, int]
    last_seen_at: datetime
    """When a server last said what it did about it; each that declares it does so once an hour, if nothing happens."""
    unseen_for: timedelta
    lock_trouble: Mapping[str, datetime] = field(default_factory=dict)
    """The live servers that the lock service does not answer, each with when that began."""


class Timers:
    """The timers of one namespace."""

    def __init__(self, sql: Catalog, namespace: str) -> None:
        self._sql, self._namespace = sql, namespace

    async def declare(self, conn: Connection, app: str | None, timers: Sequence[TimerDeclaration]) -> None:
        await self._sql["timer/declare"].execute(
            conn,
            namespace=self._namespace,
            app=app,
            names=[timer.name for timer in timers],
            schedules=[json.dumps(dict(timer.schedule)) for timer in timers],
            caps=[timer.max_concurrency for timer in timers],
            runs_per_ticks=[timer.runs_per_tick for timer in timers],
            distributed=[timer.distributed for timer in timers],
        )

    async def take_tick_if_left(
        self,
        conn: Connection,
        name: str,
        *,
        runs_per_tick: int,
        interval: timedelta | None = None,
        planned: datetime | None = None,
        now: datetime | None = None,
    ) -> datetime | None:
        """Count one run against the tick; None says that all its runs were started already."""
        tick: datetime | None = await self._sql["timer/take_tick"].fetchval(
            conn,
            namespace=self._namespace,
            name=name,
            runs_per_tick=runs_per_tick,
            interval=interval,
            planned=planned,
            now=now,
        )
        return tick

    async def add_totals(self, conn: Connection, host: str, totals: Sequence[TimerTotals]) -> set[str]:
        """Answers the timers that have a row; what is told of others is not kept."""
        rows = await self._sql["timer/add_totals"].fetch(
            conn,
            namespace=self._namespace,
            host=host,
            names=[each.name for each in totals],
            runs=[each.runs for each in totals],
            failures=[each.failures for each in totals],
            ago=[each.last_run_ago for each in totals],
            skips=[json.dumps(dict(each.skips)) for each in totals],
            lock_downs=[each.lock_down for each in totals],
        )
        return {row["name"] for row in rows}

    async def list(self, conn: Connection, name: str | None = None, limit: int = 1000) -> list[TimerRow]:
        rows = await self._sql["timer/list"].fetch(conn, namespace=self._namespace, name=name, limit=limit)
        return [_timer(row) for row in rows]

    async def forget(self, conn: Connection, *, older_than: timedelta, limit: int) -> int:
        """Delete timers that no server has declared for long, of every namespace."""
        return len(await self._sql["timer/forget"].fetch(conn, older_than=older_than, limit=limit))

    async def clock(self, conn: Connection, now: datetime | None = None) -> datetime:
        """The database's time."""
        found: datetime = await self._sql["timer/clock"].fetchval(conn, now=now)
        return found


def _timer(row: Record) -> TimerRow:
    trouble = {server: datetime.fromisoformat(since) for server, since in json.loads(row["lock_trouble"]).items()}
    read = {"schedule": json.loads(row["schedule"]), "skips": json.loads(row["skips"]), "lock_trouble": trouble}
    return TimerRow(**{**dict(row), **read})
