"""Messages published and delivered to a no-op emitter, against the bare SQL of claim and settle."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import asyncpg

from bench import wake
from bench.frame import Measure, Report, throwaway_database
from interlock import Draft, Interlock
from interlock.model.message import ClaimRequest, Road, Settlement, Settling
from interlock.outbox.postgres import PostgresMessages
from interlock.runtime.clock import DatabaseClock
from interlock.store.database import Database
from interlock.store.settings import StoreSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bench.frame import Arguments

MESSAGES, KEYS, BATCH = 20_000, 1000, 100
LEASE = timedelta(seconds=30)


async def run(arguments: Arguments) -> Report:
    count, found = arguments.scaled(MESSAGES), {name: [] for name in ("raw", "claim", "ordered", "publish", "keyed")}
    woken: list[dict[str, float]] = []
    for _ in range(arguments.rounds):
        async with throwaway_database(arguments.dsn) as dsn:
            found["publish"].append(count / await _publish(dsn, count, keys=0))
            found["raw"].append(count / await _raw_loop(dsn))
        for mode, keys in (("claim", 0), ("ordered", KEYS)):
            async with throwaway_database(arguments.dsn) as dsn:
                seconds = await _publish(dsn, count, keys=keys)
                if keys:
                    found["keyed"].append(count / seconds)
                found[mode].append(count / await _drain(dsn, count, mode))
        async with throwaway_database(arguments.dsn) as dsn:
            woken.append(await wake.measure(dsn))
    return Report(
        [
            Measure("publish, 100 per statement", "/s", found["publish"]),
            Measure("publish with keys", "/s", found["keyed"]),
            Measure("bare claim + settle", "/s", found["raw"]),
            Measure("deliver, unordered", "/s", found["claim"]),
            Measure("deliver, ordered", "/s", found["ordered"]),
            Measure("unordered / bare", "x", _ratios(found["claim"], found["raw"])),
            Measure("ordered / bare", "x", _ratios(found["ordered"], found["raw"])),
            *wake.measures(woken),
        ],
        {"messages": count, "keys": KEYS, "batch": BATCH, "wake-ups per round": wake.WAKES},
    )


def _ratios(ours: list[float], other: list[float]) -> list[float]:
    return [mine / theirs for mine, theirs in zip(ours, other, strict=True)]


async def _publish(dsn: str, count: int, *, keys: int) -> float:
    app, conn = Interlock(dsn), await asyncpg.connect(dsn)
    began = time.perf_counter()
    for start in range(0, count, BATCH):
        drafts = [Draft("t", {"n": n}, key=f"k{n % keys}" if keys else None) for n in range(start, start + BATCH)]
        await app.outbox.apublish_many(conn, drafts)
    took = time.perf_counter() - began
    await conn.execute("VACUUM ANALYZE interlock.outbox")
    await conn.close()
    return took


async def _raw_loop(dsn: str) -> float:
    """The statements of claim and settle one after the other, with nothing delivered in between."""
    async with _store(dsn) as store:
        began = time.perf_counter()
        while True:
            request = ClaimRequest([Road("^t$", 3)], BATCH, LEASE, uuid4())
            claimed = (await store.claim(request)).messages
            if not claimed:
                return time.perf_counter() - began
            await store.settle([Settlement(each.id, request.token, Settling.DELIVERED) for each in claimed])


@asynccontextmanager
async def _store(dsn: str) -> AsyncIterator[PostgresMessages]:
    database = Database(dsn, StoreSettings(dsn=dsn))
    store = PostgresMessages(database, clock=DatabaseClock())
    yield store
    await store.close()
    await database.close()


async def _drain(dsn: str, count: int, mode: str) -> float:
    """From the start of the worker until everything is settled; what a start costs is not counted."""
    app = Interlock(dsn, outbox_mode=mode, outbox_batch_size=BATCH)
    began, delivered = 0.0, 0

    @app.outbox.emitter("t")
    async def send(_message) -> None:
        nonlocal began, delivered
        began = began or time.perf_counter()
        delivered += 1

    conn = await asyncpg.connect(dsn)
    left = "SELECT EXISTS (SELECT FROM interlock.outbox WHERE state = 'pending')"
    async with app.running(["outbox"]):
        while delivered < count or await conn.fetchval(left):  # noqa: ASYNC110  the table says when
            await asyncio.sleep(0.005)
        took = time.perf_counter() - began
    await conn.close()
    return took
