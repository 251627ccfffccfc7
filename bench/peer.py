"""PgQueuer beside us: the same jobs, in a process of their own, on a database of their own.

It is no dependency: where it is not installed (`pip install pgqueuer`), its lines are missing from the reports. It is
run as its makers advise: asyncpg, uvloop, a batch of 100 for throughput and its default of 10 otherwise.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import asynccontextmanager
from importlib.util import find_spec
from statistics import quantiles
from typing import TYPE_CHECKING, Any

from bench.frame import throwaway_database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

IS_HERE = find_spec("pgqueuer") is not None
PAYLOAD = json.dumps({"pad": "x" * 80}).encode()
BATCH = 1_000


async def measure(server: str, what: str, *sizes: int) -> dict[str, float]:
    """Run `drain` or `enqueue` of this file in a process and a database of its own."""
    async with throwaway_database(server, migrated=False) as dsn:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.peer", what, dsn, *map(str, sizes), stdout=asyncio.subprocess.PIPE
        )
        output, _ = await child.communicate()
    return json.loads(output)


async def drain(dsn: str, jobs: int, batch: int) -> dict[str, float]:
    left, began, done = jobs, 0.0, asyncio.Event()

    async def noop(job: Any) -> None:
        nonlocal left, began
        began = began or time.perf_counter()
        json.loads(job.payload)
        left -= 1
        if left == 0:
            done.set()

    async with _queries(dsn) as (conn, queries):
        for start in range(0, jobs, BATCH):
            size = min(BATCH, jobs - start)
            await queries.enqueue(["noop"] * size, [PAYLOAD] * size, [0] * size)
        await conn.execute("VACUUM ANALYZE")
        await conn.execute("CHECKPOINT")
        cpu = time.process_time()
        async with _worker(dsn, noop, batch=batch):
            await done.wait()
            while await conn.fetchval("SELECT EXISTS (SELECT FROM pgqueuer)"):  # noqa: ASYNC110  it has no event for it
                await asyncio.sleep(0.002)
            seconds, used = time.perf_counter() - began, time.process_time() - cpu
    return {"seconds": seconds, "cpu_us": used / jobs * 1e6}


async def enqueue(dsn: str, singles: int, bulk: int, pickups: int) -> dict[str, float]:
    began = asyncio.Event()

    async def noop(_job: Any) -> None:
        began.set()

    async with _queries(dsn) as (conn, queries):
        await queries.enqueue("noop", PAYLOAD, 0)
        start = time.perf_counter()
        for _ in range(singles):
            await queries.enqueue("noop", PAYLOAD, 0)
        one_by_one = singles / (time.perf_counter() - start)
        batches, start = max(1, bulk // BATCH), time.perf_counter()
        for _ in range(batches):
            await queries.enqueue(["noop"] * BATCH, [PAYLOAD] * BATCH, [0] * BATCH)
        in_bulk = batches * BATCH / (time.perf_counter() - start)
        await conn.execute("TRUNCATE pgqueuer")
        async with _worker(dsn, noop, batch=10):
            waits = await picked_up(lambda: queries.enqueue("noop", PAYLOAD, 0), began, pickups)
    return {"one by one": one_by_one, "bulk": in_bulk, **waits}


async def picked_up(send: Callable[[], Any], began: asyncio.Event, pickups: int) -> dict[str, float]:
    """From the call that enqueues to the first line of the body, on an idle system, one after the other."""
    waits = []
    for number in range(pickups + 20):
        began.clear()
        start = time.perf_counter()
        await send()
        await asyncio.wait_for(began.wait(), 10)
        if number >= 20:
            waits.append((time.perf_counter() - start) * 1000)
        await asyncio.sleep(0.01)
    cuts = quantiles(waits, n=100)
    return {"pickup p50": cuts[49], "pickup p95": cuts[94], "pickup p99": cuts[98]}


@asynccontextmanager
async def _queries(dsn: str) -> AsyncIterator[tuple[Any, Any]]:
    import asyncpg
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.queries import Queries

    conn = await asyncpg.connect(dsn)
    queries = Queries(AsyncpgDriver(conn))
    await queries.install()
    try:
        yield conn, queries
    finally:
        await conn.close()


@asynccontextmanager
async def _worker(dsn: str, noop: Callable[[Any], Any], *, batch: int) -> AsyncIterator[None]:
    import asyncpg
    from pgqueuer import PgQueuer
    from pgqueuer.db import AsyncpgDriver

    conn = await asyncpg.connect(dsn)
    queuer = PgQueuer(AsyncpgDriver(conn))
    queuer.entrypoint("noop")(noop)
    running = asyncio.create_task(queuer.run(batch_size=batch))
    try:
        yield
    finally:
        queuer.shutdown.set()
        await asyncio.wait({running}, timeout=5)
        running.cancel()
        await asyncio.wait({running})
        await conn.close()


if __name__ == "__main__":
    import uvloop

    measured = {"drain": drain, "enqueue": enqueue}[sys.argv[1]]
    print(json.dumps(uvloop.run(measured(sys.argv[2], *map(int, sys.argv[3:])))))
