"""How long a slot takes: acquire and release against a raw client that does the same round trips.

The latency of an acquisition is printed beside what is commonly expected of such locks.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import time
from contextlib import asynccontextmanager
from statistics import mean, median, quantiles
from typing import TYPE_CHECKING
from uuid import uuid4

import asyncpg
from redis.asyncio import Redis

from bench.frame import Measure, Report, throwaway_database
from interlock import Interlock
from tests.harness.ports import free_port
from tests.harness.valkey import server_binaries

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from bench.frame import Arguments

EXPECTED = {
    "Redis, local": "1-2 ms on average, p99 5 ms",
    "Redis, remote": "5-10 ms, p99 20 ms",
    "SQL database, local": "5-15 ms, p99 50 ms",
    "SQL database, remote": "15-30 ms, p99 100 ms",
}
OPERATIONS = 500
SLOTS = 50
DELETE_IF_MINE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
RAW_TABLE = """
CREATE TABLE raw_lock (name text PRIMARY KEY, token uuid, expires_at timestamptz NOT NULL) WITH (fillfactor = 50);
INSERT INTO raw_lock VALUES ('x', NULL, now());
"""
RAW_TAKE = """
UPDATE raw_lock SET token = $1, expires_at = clock_timestamp() + interval '30 s'
WHERE name = 'x' AND expires_at <= statement_timestamp() RETURNING name
"""
RAW_GIVE = "UPDATE raw_lock SET token = NULL, expires_at = statement_timestamp() WHERE name = 'x' AND token = $1"


async def run(arguments: Arguments) -> Report:
    count = arguments.scaled(OPERATIONS)
    async with throwaway_database(arguments.dsn) as dsn, _valkey() as url:
        on_postgres = await _compare(
            Interlock(dsn, server_name="bench"), _raw_postgres(dsn), "PostgreSQL", count, arguments.rounds
        )
        redis = Interlock(dsn, server_name="bench", lock_backend="redis", redis_url=url)
        on_redis = await _compare(redis, _raw_redis(url), "Redis", count, arguments.rounds)
    facts = {"operations per round": count, "slots when all are taken": SLOTS}
    return Report([*on_postgres, *on_redis], facts | {f"expected, {where}": what for where, what in EXPECTED.items()})


async def _compare(
    app: Interlock, raw: AbstractAsyncContextManager[Callable[[], Awaitable[None]]], where: str, count: int, rounds: int
) -> list[Measure]:
    acquisitions: list[float] = []

    async def ours() -> None:
        began = time.perf_counter()
        lease = await app.locks.atry_hold("x")
        acquisitions.append((time.perf_counter() - began) * 1000)
        await lease.arelease()

    async def refused() -> None:
        assert await app.locks.atry_hold("full", SLOTS) is None

    async with raw as raw_once:
        for _ in range(SLOTS):
            await app.locks.atry_hold("full", SLOTS)
        samples: dict[str, list[list[float]]] = {"ours": [], "raw": [], "refused": [], "acquire": []}
        for _ in range(rounds):
            compared = await _by_turns({"ours": ours, "raw": raw_once}, count)
            for name, each in (compared | await _by_turns({"refused": refused}, count)).items():
                samples[name].append(each)
            samples["acquire"].append(acquisitions[-count:])
    await app.aclose()
    return _measures(samples, where)


async def _by_turns(contestants: dict[str, Callable[[], Awaitable[None]]], count: int) -> dict[str, list[float]]:
    """One operation of each in turn: the machine's speed changes faster than a round lasts."""
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(count):
        for name, once in contestants.items():
            began = time.perf_counter()
            await once()
            taken[name].append((time.perf_counter() - began) * 1000)
    return taken


def _measures(samples: dict[str, list[list[float]]], where: str) -> list[Measure]:
    medians = {name: [median(each) for each in rounds] for name, rounds in samples.items()}
    ratios = [mine / raw for mine, raw in zip(medians["ours"], medians["raw"], strict=True)]
    return [
        Measure(f"{where}: acquire + release", "ms", medians["ours"]),
        Measure(f"{where}: acquire alone, on average", "ms", [mean(each) for each in samples["acquire"]]),
        Measure(f"{where}: acquire alone, p99", "ms", [quantiles(each, n=100)[98] for each in samples["acquire"]]),
        Measure(f"{where}: raw client", "ms", medians["raw"]),
        Measure(f"{where}: ours / raw (at most 1.5)", "x", ratios),
        Measure(f"{where}: all {SLOTS} slots taken, one try", "ms", medians["refused"]),
    ]


@asynccontextmanager
async def _raw_postgres(dsn: str):
    conn = await asyncpg.connect(dsn)
    await conn.execute(RAW_TABLE)

    async def once() -> None:
        token = uuid4()
        assert await conn.fetchval(RAW_TAKE, token)
        await conn.execute(RAW_GIVE, token)

    yield once
    await conn.close()


@asynccontextmanager
async def _raw_redis(url: str):
    client = Redis.from_url(url)
    digest = await client.script_load(DELETE_IF_MINE)

    async def once() -> None:
        token = uuid4().hex
        assert await client.set("raw", token, nx=True, px=30_000)
        await client.evalsha(digest, 1, "raw", token)

    yield once
    await client.aclose()


@asynccontextmanager
async def _valkey():
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        command = [server_binaries()[0].path, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
        server = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL)
        try:
            await _answers(port)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.kill()
            await server.wait()


async def _answers(port: int) -> None:
    for _ in range(200):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise RuntimeError("the lock server does not answer")
