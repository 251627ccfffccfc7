"""What the benchmarks share: arguments, a database to throw away, samples and what is said of them.

The machine is never quiet and its speed drifts, so that absolute figures are only hints. What is compared is run in
turn, round by round, and judged by the median of the rounds' ratios.
"""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """What every benchmark is told: the server, how often to measure, and how large to make its world (1 = as said)."""

    dsn: str
    rounds: int = 5
    scale: float = 1.0

    def scaled(self, size: int) -> int:
        return max(1, round(size * self.scale))


@dataclass(frozen=True)
class Measure:
    """Samples of one thing, in one unit."""

    name: str
    unit: str
    samples: Sequence[float]

    def record(self) -> dict[str, Any]:
        shown = {"median": median(self.samples), "best": min(self.samples), "worst": max(self.samples)}
        return {"name": self.name, "unit": self.unit, **shown, "rounds": len(self.samples)}


@dataclass(frozen=True)
class Report:
    """The measures of one benchmark, and facts that a reader needs to judge them."""

    measures: Sequence[Measure]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        return {"measures": [measure.record() for measure in self.measures], "facts": dict(self.facts)}


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """The seconds that it took."""
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def in_turn(contestants: Mapping[str, Callable[[], Awaitable[object]]], rounds: int) -> dict[str, list[float]]:
    """The seconds of each contestant, round by round; every second round in reverse, so that no place is the better."""
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds):
        names = list(contestants)
        for name in names if number % 2 == 0 else reversed(names):
            samples[name].append(await timed(contestants[name]))
    return samples


def ratio(samples: Mapping[str, Sequence[float]], ours: str, other: str) -> Measure:
    """How many times as long ours takes as the other, in each round."""
    rounds = [mine / theirs for mine, theirs in zip(samples[ours], samples[other], strict=True)]
    return Measure(f"{ours} / {other}", "x", rounds)


@asynccontextmanager
async def throwaway_database(server: str, *, migrated: bool = True) -> AsyncIterator[str]:
    """A database of one's own on the server, dropped afterwards."""
    import asyncpg

    from interlock.store import migrate

    name = f"bench_{uuid4().hex[:12]}"
    await _execute(server, f'CREATE DATABASE "{name}" TEMPLATE template0')
    dsn = urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
    try:
        if migrated:
            conn = await asyncpg.connect(dsn)
            await migrate.apply(conn, "interlock")
            await conn.close()
        yield dsn
    finally:
        await _execute(server, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


async def _execute(dsn: str, sql: str) -> None:
    import asyncpg

    conn = await asyncpg.connect(dsn)
    try:
        await conn.execute(sql)
    finally:
        await conn.close()
