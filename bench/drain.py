"""Drain no-op jobs through the whole pipeline: dispatch, claim, run, settle, with full history kept.

One server, in a process of its own; the clock runs from the first body to the last settled outcome. `default` has the
default settings, 50 slots; `hundred` has 100, as many as the peer takes at once; `wide` has 500; `capped` is `wide`
under a global cap that never binds, so that what it takes longer is the price of exact caps. A ratio to the peer is of
speeds: 2 is twice as fast.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from bench import peer
from bench.frame import Measure, Report, ratio, throwaway_database

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import asyncpg

    from bench.frame import Arguments

JOBS = 20_000
HISTORY = 1_000_000
PAYLOAD = "x" * 80
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "hundred": {"worker_slots": 100},
    "wide": {"worker_slots": 500, "max_queued_jobs_per_cycle": 500},
    "capped": {"worker_slots": 500, "max_queued_jobs_per_cycle": 500, "max_active_jobs": 1_000_000},
}
PEERS = {"pgqueuer, batch 100": 100, "pgqueuer, its default": 10}
FILL = """
INSERT INTO interlock.execution (state, entry_id, first_entry_id, kind, train, input, group_id, attempt, crashes,
    max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, created_at, ended_at)
SELECT 'completed', -n, -n, 'adhoc', 'noop', '{}', 1, 1, 0, 3, 3, '1 s', '1 s', 1, now() - interval '2 d',
    now() - interval '1 d'
FROM generate_series(1, $1) n
"""
WORLD = """
SELECT pg_current_wal_lsn() - '0/0'::pg_lsn AS wal, pg_current_xact_id()::text::bigint AS transactions,
    (SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()) AS buffers
"""


async def run(arguments: Arguments) -> Report:
    jobs, history = arguments.scaled(JOBS), arguments.scaled(HISTORY)
    peers = PEERS if peer.IS_HERE else {}
    contestants = [*VARIANTS, *peers]
    samples: dict[str, list[dict[str, float]]] = {name: [] for name in contestants}
    async with AsyncExitStack() as stack:
        dsn = await stack.enter_async_context(throwaway_database(arguments.dsn))
        await _fill(dsn, history)
        for number in range(arguments.rounds):
            for name in contestants if number % 2 == 0 else reversed(contestants):
                theirs = name in peers
                one = (
                    peer.measure(arguments.dsn, "drain", jobs, peers[name])
                    if theirs
                    else _in_a_process(dsn, name, jobs)
                )
                samples[name].append(await one)
    seconds = {name: [one["seconds"] for one in found] for name, found in samples.items()}
    return Report(
        [
            *(Measure(f"{name}: drain", "jobs/s", [jobs / one for one in seconds[name]]) for name in contestants),
            *(_times_as_fast(seconds, name, other) for other in peers for name in VARIANTS),
            ratio(seconds, "capped", "wide"),
            *(
                Measure(f"{name}: {what}", "per job", [one[what] for one in samples[name]])
                for name in VARIANTS
                for what in ("cpu_us", "wal_bytes", "commits", "round_trips", "buffers")
            ),
        ],
        {"jobs": jobs, "history": history},
    )


def _times_as_fast(seconds: dict[str, list[float]], name: str, other: str) -> Measure:
    rounds = [theirs / ours for ours, theirs in zip(seconds[name], seconds[other], strict=True)]
    return Measure(f"{name} / {other}, speed", "x", rounds)


async def _fill(dsn: str, history: int) -> None:
    import asyncpg

    conn = await asyncpg.connect(dsn, command_timeout=600)
    await conn.execute(FILL, history)
    await conn.execute("VACUUM ANALYZE")
    await conn.close()


async def _in_a_process(dsn: str, variant: str, jobs: int) -> dict[str, float]:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.drain", dsn, variant, str(jobs), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await child.communicate()
    return json.loads(output)


async def _drain(dsn: str, variant: str, jobs: int) -> dict[str, float]:
    import time

    import asyncpg

    from interlock import Interlock

    app, done = Interlock(dsn, **VARIANTS[variant]), asyncio.Event()
    left, began = jobs, 0.0

    @app.train
    async def noop(pad: str) -> None:  # noqa: ARG001  the payload of every job
        nonlocal left, began
        began = began or time.perf_counter()
        left -= 1
        if left == 0:
            done.set()

    conn = await asyncpg.connect(dsn)
    for start in range(0, jobs, 1000):
        await app.aenqueue_many([noop.bind(PAYLOAD) for _ in range(min(1000, jobs - start))])
    await conn.execute("CHECKPOINT")
    before, trips = await conn.fetchrow(WORLD), _count_round_trips()
    cpu = time.process_time()
    async with app.running(["worker"]):
        await done.wait()
        await _until_settled(conn)
        seconds, used = time.perf_counter() - began, time.process_time() - cpu
        round_trips = trips()
    after = await conn.fetchrow(WORLD)
    await conn.close()
    return {
        "seconds": seconds,
        "cpu_us": used / jobs * 1e6,
        "wal_bytes": float(after["wal"] - before["wal"]) / jobs,
        "commits": (after["transactions"] - before["transactions"]) / jobs,
        "buffers": (after["buffers"] - before["buffers"]) / jobs,
        "round_trips": round_trips / jobs,
    }


async def _until_settled(conn: asyncpg.Connection) -> None:
    while await conn.fetchval("SELECT EXISTS (SELECT FROM interlock.execution WHERE ended_at IS NULL)"):  # noqa: ASYNC110  another process settles
        await asyncio.sleep(0.002)


def _count_round_trips() -> Callable[[], int]:
    """From now on every exchange with PostgreSQL is counted; call the answer for the count."""
    from asyncpg import Connection

    count = 0

    def counted(call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def one_more(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            return await call(*args, **kwargs)

        return one_more

    Connection._do_execute = counted(Connection._do_execute)  # noqa: SLF001  the driver has no hook for it
    Connection.execute = counted(Connection.execute)
    return lambda: count


if __name__ == "__main__":
    import uvloop

    print(json.dumps(uvloop.run(_drain(sys.argv[1], sys.argv[2], int(sys.argv[3])))))
