"""Messages published and delivered to a no-op emitter, against the bare SQL of claim and settle."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from datetime import timedelta
from statistics import median
from typing import TYPE_CHECKING
from uuid import uuid4

import asyncpg

from bench.frame import Measure, Report, throwaway_database
from interlock import Draft, Interlock
from interlock.model.message import ClaimRequest, Road, Settlement, Settling
from interlock.outbox.postgres import PostgresMessages
from interlock.runtime.clock import DatabaseClock
from interlock.store.database import Database
from interlock.store.notify import channel_of
from interlock.store.settings import StoreSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bench.frame import Arguments

MESSAGES, KEYS, BATCH = 20_000, 1000, 100
LEASE = timedelta(seconds=30)
WAKES = 100
NOTIFY = "NOTIFY bench"
WRITE = "WITH w AS (INSERT INTO noted VALUES (1) RETURNING n) SELECT pg_notify('bench', '') FROM w"


async def run(arguments: Arguments) -> Report:
    count, found = arguments.scaled(MESSAGES), {name: [] for name in ("raw", "claim", "ordered", "publish", "keyed")}
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
            for name, times in (await _wakes(dsn)).items():
                found.setdefault(name, []).append(median(times) * 1000)
    return Report(
        [
            Measure("publish, 100 per statement", "/s", found["publish"]),
            Measure("publish with keys", "/s", found["keyed"]),
            Measure("bare claim + settle", "/s", found["raw"]),
            Measure("deliver, unordered", "/s", found["claim"]),
            Measure("deliver, ordered", "/s", found["ordered"]),
            Measure("unordered / bare", "x", _ratios(found["claim"], found["raw"])),
            Measure("ordered / bare", "x", _ratios(found["ordered"], found["raw"])),
            Measure("bare NOTIFY to a listener, p50", "ms", found["notify"]),
            Measure("idle wake-up: NOTIFY to a worker that begins to claim, p50", "ms", found["awake"]),
            Measure("idle wake-up / bare NOTIFY", "x", _ratios(found["awake"], found["notify"])),
            Measure("commit of a publish to its emitter, p50", "ms", found["woken"]),
            Measure("commit of a publish to its emitter / bare NOTIFY", "x", _ratios(found["woken"], found["notify"])),
            Measure("publish to emitter, its own commit included, p50", "ms", found["whole"]),
            Measure("publish to emitter / bare NOTIFY", "x", _ratios(found["whole"], found["notify"])),
            Measure("insert + NOTIFY to a listener, p50", "ms", found["write"]),
            Measure(
                "of that, flushing the commit",
                "ms",
                [a - b for a, b in zip(found["write"], found["lazy"], strict=True)],
            ),
            Measure("publish to emitter / insert + NOTIFY", "x", _ratios(found["whole"], found["write"])),
        ],
        {"messages": count, "keys": KEYS, "batch": BATCH, "wake-ups per round": WAKES},
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


async def _wakes(dsn: str) -> dict[str, list[float]]:
    """In turn: when a plain listener hears a notice, when an idle worker does, and when its emitter has the message.

    A wake-up is over when the worker begins to claim. Its emitter is called after that, because a claim is a write that
    waits for the disk, as the publish before it did; both ways to the emitter are given too.
    """
    app, heard, claims, claim = Interlock(dsn), asyncio.Event(), asyncio.Event(), PostgresMessages.claim

    def claiming(messages: PostgresMessages, request: ClaimRequest):
        began.append(time.perf_counter())
        claims.set()
        return claim(messages, request)

    @app.outbox.emitter("t")
    async def send(_message) -> None:
        heard.set()

    listener, conn, lazy = [await asyncpg.connect(dsn) for _ in range(3)]
    await listener.add_listener("bench", lambda *_: heard.set())
    await conn.execute("CREATE TABLE noted (n integer)")
    await lazy.execute("SET synchronous_commit = off")
    found: dict[str, list[float]] = {name: [] for name in ("notify", "awake", "write", "lazy", "whole", "woken")}
    began: list[float] = []
    same = f"SELECT pg_notify('{channel_of('interlock')}', 'outbox:')"
    PostgresMessages.claim = claiming
    async with app.running(["outbox"]):
        await app.outbox.apublish(conn, "t", {})
        await heard.wait()
        for _ in range(WAKES):
            found["notify"].append((await _heard(heard, conn.execute(NOTIFY)))[0])
            found["awake"].append(await _claims(claims, began, conn.execute(same)))
            found["write"].append((await _heard(heard, conn.execute(WRITE)))[0])
            found["lazy"].append((await _heard(heard, lazy.execute(WRITE)))[0])
            whole, sent = await _heard(heard, app.outbox.apublish(conn, "t", {}))
            found["whole"].append(whole)
            found["woken"].append(whole - sent)
    PostgresMessages.claim = claim
    for each in (listener, conn, lazy):
        await each.close()
    return found


async def _claims(claims: asyncio.Event, began: list[float], sending) -> float:
    """The seconds until a worker begins to claim."""
    await asyncio.sleep(0.02)
    claims.clear()
    began.clear()
    sent = time.perf_counter()
    await sending
    await claims.wait()
    return began[0] - sent


async def _heard(heard: asyncio.Event, sending) -> tuple[float, float]:
    """The seconds until it was heard, and until the sender knew that it was sent."""
    await asyncio.sleep(0.02)
    heard.clear()
    began = time.perf_counter()
    await sending
    sent = time.perf_counter() - began
    await heard.wait()
    return time.perf_counter() - began, sent
