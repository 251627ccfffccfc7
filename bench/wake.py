"""How soon an idle worker delivers, beside the round trip of a bare notice.

The worker is a process of its own, in the event loop that `interlock run` uses. Beside its outbox it answers notices
at once (`ping`), and after a row of its own was committed (`store`), because a claim is a row that has to be on disk
before its message is emitted. Every way is taken in turn, with a pause before it, so that all meet the machine in one
state.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import asynccontextmanager
from statistics import median
from typing import TYPE_CHECKING

import asyncpg

from bench.frame import Measure
from interlock import Interlock
from interlock.app import fast_loop
from interlock.outbox.postgres import PostgresMessages

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from interlock.model.message import ClaimRequest

WAKES = 100
PAUSE = 0.02
STORE = "WITH w AS (INSERT INTO noted VALUES (1) RETURNING n) SELECT pg_notify('pong', '') FROM w"
ANSWERS = {"ping": "NOTIFY pong", "store": STORE}


def measures(rounds: Sequence[Mapping[str, float]]) -> list[Measure]:
    """What is said of the rounds: milliseconds, each the median of a round, and their ratios."""

    def of(name: str, what: str) -> Measure:
        return Measure(what, "ms", [one[name] for one in rounds])

    def ratio(name: str, other: str, what: str) -> Measure:
        return Measure(what, "x", [one[name] / one[other] for one in rounds])

    return [
        of("ping", "NOTIFY there and back, p50"),
        of("emitted", "idle wake-up: a publisher hears of its commit to the first line of the emitter, p50"),
        ratio("emitted", "ping", "idle wake-up / NOTIFY there and back"),
        of("claiming", "of that, until the worker claims (below 0: it hears of the commit first)"),
        of("flush", "of that, about, until the claim is on disk"),
        ratio("claiming", "ping", "until the worker claims / NOTIFY there and back"),
        of("store", "NOTIFY there, a row on disk, and back, p50"),
        ratio("emitted", "store", "idle wake-up / NOTIFY there, a row on disk, and back"),
        of("published", "publish to the first line of its emitter, its own commit included, p50"),
    ]


async def measure(dsn: str) -> dict[str, float]:
    """The medians of one round, in milliseconds."""
    app, heard, answered = Interlock(dsn), asyncio.Event(), 0.0

    def hear(*_: object) -> None:
        nonlocal answered
        answered = time.perf_counter()
        heard.set()

    listener, conn, lazy = [await asyncpg.connect(dsn) for _ in range(3)]
    await conn.execute("CREATE TABLE noted (n integer)")
    await listener.add_listener("pong", hear)
    await lazy.execute("SET synchronous_commit = off")
    found: dict[str, list[float]] = {}

    async def there_and_back(name: str) -> None:
        heard.clear()
        began = time.perf_counter()
        await conn.execute(f"NOTIFY {name}")
        await heard.wait()
        found.setdefault(name, []).append(answered - began)

    async def publish(told: Callable[[], Awaitable[Mapping[str, float]]]) -> None:
        began = time.perf_counter()
        await app.outbox.apublish(conn, "t", {})
        committed = time.perf_counter()
        stamps = await told()
        found.setdefault("published", []).append(stamps["emitted"] - began)
        for name, stamp in stamps.items():
            found.setdefault(name, []).append(stamp - committed)

    async with _worker(dsn) as told:
        await app.outbox.apublish(conn, "t", {})
        await told()
        for _ in range(WAKES):
            for name in ANSWERS:
                await asyncio.sleep(PAUSE)
                await there_and_back(name)
            for name, one in (("durable", conn), ("lazy", lazy)):
                await asyncio.sleep(PAUSE)
                began = time.perf_counter()
                await one.execute("INSERT INTO noted VALUES (1)")
                found.setdefault(name, []).append(time.perf_counter() - began)
            await asyncio.sleep(PAUSE)
            await publish(told)
    for each in (listener, conn, lazy):
        await each.close()
    medians = {name: median(times) * 1000 for name, times in found.items()}
    return {**medians, "flush": medians["durable"] - medians["lazy"]}


@asynccontextmanager
async def _worker(dsn: str) -> AsyncIterator[Callable[[], Awaitable[dict[str, float]]]]:
    """Another process that delivers; call the answer for the times of its next delivery, by the machine's clock."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.wake", dsn, stdout=asyncio.subprocess.PIPE
    )

    async def told() -> dict[str, float]:
        return json.loads(await child.stdout.readline())

    try:
        yield told
    finally:
        child.terminate()
        await child.wait()


async def _serve(dsn: str) -> None:
    """Deliver, and tell of each delivery when it began, and when the claim of its message did."""
    app, stamps, claim = Interlock(dsn), {}, PostgresMessages.claim

    def claiming(messages: PostgresMessages, request: ClaimRequest):
        stamps["claiming"] = time.perf_counter()
        return claim(messages, request)

    @app.outbox.emitter("t")
    async def send(_message) -> None:
        stamps["emitted"] = time.perf_counter()
        print(json.dumps(stamps), flush=True)

    PostgresMessages.claim = claiming
    kept = {channel: await asyncpg.connect(dsn) for channel in ANSWERS}
    for channel, conn in kept.items():
        await conn.add_listener(channel, _answering(conn, ANSWERS[channel]))
    async with app.running(["outbox"]):
        await asyncio.Event().wait()


def _answering(conn: asyncpg.Connection, answer: str) -> Callable[..., None]:
    sending: set[asyncio.Task] = set()

    def hear(*_: object) -> None:
        task = asyncio.create_task(conn.execute(answer))
        sending.add(task)
        task.add_done_callback(sending.discard)

    return hear


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        runner.run(_serve(sys.argv[1]))
