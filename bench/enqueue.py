"""Enqueue: one at a time, a thousand in one round trip, and from the enqueue to the first line of the body.

The pickup is measured on an idle system, one job after the other, with everything in one process: `aenqueue` to the
body's first line.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from statistics import quantiles
from typing import TYPE_CHECKING

from bench.frame import Measure, Report, throwaway_database

if TYPE_CHECKING:
    from bench.frame import Arguments

ONE_BY_ONE, BULK, PICKUPS, BATCH = 2_000, 50_000, 300, 1_000
PAYLOAD = "x" * 80


async def run(arguments: Arguments) -> Report:
    found = []
    for _ in range(arguments.rounds):
        async with throwaway_database(arguments.dsn) as dsn:
            found.append(await _in_a_process(dsn, arguments.scale))
    units = {"one by one": "/s", "bulk": "/s", "bulk with bind": "/s"}
    return Report(
        [Measure(name, units.get(name, "ms"), [one[name] for one in found]) for name in found[0]],
        {"batch": BATCH, "payload": len(PAYLOAD)},
    )


async def _in_a_process(dsn: str, scale: float) -> dict[str, float]:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.enqueue", dsn, str(scale), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await child.communicate()
    return json.loads(output)


async def _measure(dsn: str, scale: float) -> dict[str, float]:
    from interlock import Interlock

    app, began = Interlock(dsn), asyncio.Event()

    @app.train
    async def noop(pad: str) -> None:  # noqa: ARG001  the payload of every job
        began.set()

    singles, bulk, pickups = (max(50, round(size * scale)) for size in (ONE_BY_ONE, BULK, PICKUPS))
    async with app:
        await noop.aenqueue(PAYLOAD)
        start = time.perf_counter()
        for _ in range(singles):
            await noop.aenqueue(PAYLOAD)
        one_by_one = singles / (time.perf_counter() - start)
        start, inside = time.perf_counter(), 0.0
        batches = max(1, bulk // BATCH)
        for _ in range(batches):
            runs = [noop.bind(PAYLOAD) for _ in range(BATCH)]
            entered = time.perf_counter()
            await app.aenqueue_many(runs)
            inside += time.perf_counter() - entered
        whole = time.perf_counter() - start
        database = await app.adatabase()
        async with database.connection() as conn:
            await conn.execute("TRUNCATE interlock.work_queue")
    waits = []
    async with app.running(["worker"]):
        for number in range(pickups + 20):
            began.clear()
            start = time.perf_counter()
            await noop.aenqueue(PAYLOAD)
            await began.wait()
            if number >= 20:
                waits.append((time.perf_counter() - start) * 1000)
            await asyncio.sleep(0.01)
    cuts = quantiles(waits, n=100)
    return {
        "one by one": one_by_one,
        "bulk": batches * BATCH / inside,
        "bulk with bind": batches * BATCH / whole,
        "pickup p50": cuts[49],
        "pickup p95": cuts[94],
        "pickup p99": cuts[98],
    }


if __name__ == "__main__":
    import uvloop

    print(json.dumps(uvloop.run(_measure(sys.argv[1], float(sys.argv[2])))))
