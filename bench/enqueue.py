"""Enqueue: one at a time, a thousand in one round trip, and from the enqueue to the first line of the body.

The pickup is measured on an idle system, one job after the other, with everything in one process: `aenqueue` to the
body's first line. The ratio of a speed is good above 1, that of a wait below.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING

from bench import peer
from bench.frame import Measure, Report, throwaway_database

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.frame import Arguments

    Found = Mapping[str, float]

ONE_BY_ONE, BULK, PICKUPS, BATCH = 2_000, 50_000, 300, 1_000
PAYLOAD = "x" * 80


async def run(arguments: Arguments) -> Report:
    ours, theirs = [], []
    for _ in range(arguments.rounds):
        async with throwaway_database(arguments.dsn) as dsn:
            ours.append(await _in_a_process(dsn, arguments.scale))
        if peer.IS_HERE:
            theirs.append(await peer.measure(arguments.dsn, "enqueue", *_sizes(arguments.scale)))
    return Report(
        [
            *_measures(ours, ""),
            *_measures(theirs, "pgqueuer: "),
            *(Measure(f"{name} / pgqueuer", "x", _ratios(ours, theirs, name)) for name in (theirs or [{}])[0]),
        ],
        {"batch": BATCH, "payload": len(PAYLOAD)},
    )


def _sizes(scale: float) -> list[int]:
    return [max(50, round(size * scale)) for size in (ONE_BY_ONE, BULK, PICKUPS)]


def _measures(found: Sequence[Found], prefix: str) -> list[Measure]:
    names = found[0] if found else ()
    return [
        Measure(prefix + name, "ms" if name.startswith("pickup") else "/s", [one[name] for one in found])
        for name in names
    ]


def _ratios(ours: Sequence[Found], theirs: Sequence[Found], name: str) -> list[float]:
    return [mine[name] / other[name] for mine, other in zip(ours, theirs, strict=True)]


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

    singles, bulk, pickups = _sizes(scale)
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
    async with app.running(["worker"]):
        waits = await peer.picked_up(lambda: noop.aenqueue(PAYLOAD), began, pickups)
    return {
        "one by one": one_by_one,
        "bulk": batches * BATCH / inside,
        "bulk with bind": batches * BATCH / whole,
        **waits,
    }


if __name__ == "__main__":
    import uvloop

    print(json.dumps(uvloop.run(_measure(sys.argv[1], float(sys.argv[2])))))
