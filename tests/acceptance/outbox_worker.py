"""A worker process that delivers to a receiver which logs every call, and the log as the tests read it."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg

from interlock import Interlock, failpoints
from interlock.model.message import Dead
from interlock.observe.events import LanesChanged, MessageSettleRefused
from interlock.outbox.held import Held
from interlock.trains.options import Backoff
from tests.harness.child import tell
from tests.harness.profile import SHORT_LEASES
from tests.harness.unguarded import take_guard_off
from tests.harness.waiting import eventually

if TYPE_CHECKING:
    from interlock.outbox.publish import Draft

SETTINGS = {
    **SHORT_LEASES,
    "outbox_lease": timedelta(seconds=2),
    "outbox_emit_timeout": timedelta(seconds=1),
    "outbox_polling_interval": timedelta(seconds=0.5),
    "outbox_batch_size": 50,
}
QUICK = Backoff(delay=timedelta(seconds=0.05), max_delay=timedelta(seconds=0.2))


def app_of(dsn: str, log: str, options: dict) -> Interlock:
    """An app whose one emitter does what the payload says, after it has logged the call."""
    settings = {name: timedelta(seconds=value) if name.endswith(("lease", "timeout")) else value
                for name, value in options.items() if name.startswith("outbox_")}  # fmt: skip
    app = Interlock(dsn, **{**SETTINGS, **settings})
    note, probe = Receiver(log).note, LeaseProbe(dsn)

    async def send(message, context):
        payload = message.payload or {}
        note(message, context, lease=await probe.left(message) if options.get("probing") else None)
        await failpoints.reach("outbox.emitting")
        if payload.get("exit"):
            os._exit(9)
        if payload.get("dead"):
            return Dead("refused")
        if payload.get("fail_first") and not context.redelivery:
            raise ValueError("the receiver was unwell")
        if payload.get("fail") or random.random() < options.get("failing", 0):
            raise ValueError("the receiver is unwell")
        if seconds := payload.get("sleep", options.get("sleep", 0)):
            await asyncio.sleep(seconds)
        return None

    app.outbox.emitter("*", backoff=QUICK, on_dead=options.get("on_dead", "hold"))(send)
    return app


class LeaseProbe:
    """For how long the claim of a message lasted when its delivery began, by the clock that judges it."""

    def __init__(self, dsn: str) -> None:
        self._dsn, self._conn = dsn, None

    async def left(self, message) -> float:
        began = time.monotonic()
        self._conn = self._conn or await asyncpg.connect(self._dsn)
        left = "SELECT extract(epoch FROM available_at - clock_timestamp())::float8 FROM interlock.outbox WHERE id = $1"
        found = await self._conn.fetchval(left, message.claimed.id)
        return found + time.monotonic() - began  # what asking took does not count against it


async def serve(dsn: str, log: str, options: dict) -> None:
    """With `unguarded` statements lack a guard, and with `blind` nobody looks at the lease: both for controls."""
    app = app_of(dsn, log, options)
    app.events.subscribe(lambda event: tell("refused", answer=event.answer), (MessageSettleRefused,))
    app.events.subscribe(lambda event: tell("looked", held=event.held), (LanesChanged,))
    if options.keys() & {"unguarded", "blind"}:
        take_guards_off(options)
    async with app.running(["outbox"]):
        tell("up")
        await asyncio.Event().wait()


def take_guards_off(options: dict) -> None:
    """For the whole life of this process."""
    import pytest  # most workers keep their guards and start sooner without it

    patch = pytest.MonkeyPatch()
    take_guard_off(patch, options.get("unguarded", {}), options.get("instead", ""))
    if options.get("blind"):
        patch.setattr(Held, "covers", lambda *_: True)


async def serve_naively(dsn: str, log: str) -> None:
    """Select, emit, then save: guarded by the state, as optimistic concurrency would, the save comes too late."""
    app, conn = Interlock(dsn), await asyncpg.connect(dsn)
    [found] = await app.outbox.afind_pending()
    tell("selected")
    await failpoints.reach("naive.selected")
    Receiver(log).write({"id": found.message_id, "pid": os.getpid()})
    save = "UPDATE interlock.outbox SET state = 'delivered', ended_at = now() WHERE id = $1 AND state = 'pending'"
    tell("saved", rows=await conn.execute(save, found.id))
    await conn.close()
    await app.aclose()


class Receiver:
    """One line per call, appended in a single write, so that a killed caller leaves a whole line or none."""

    def __init__(self, log: str | Path) -> None:
        self._path = Path(log)

    def note(self, message, context, lease: float | None = None) -> None:
        call = {
            "id": message.message_id,
            "key": message.key,
            "n": (message.payload or {}).get("n"),
            "topic": message.topic,
            "again": context.redelivery,
            "lease": lease,
            "pid": os.getpid(),
        }
        self.write(call)

    def write(self, call: dict) -> None:
        line = json.dumps(call).encode() + b"\n"
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, line)
        os.close(file)

    def calls(self) -> list[dict]:
        return [json.loads(line) for line in self._path.read_text().splitlines()] if self._path.exists() else []

    def counts(self) -> Counter[str]:
        return Counter(call["id"] for call in self.calls())

    def inversions(self) -> list[dict]:
        """First deliveries of a key that came after a later one of it."""
        last: dict[str, int] = {}
        seen: set[str] = set()
        found = []
        for call in self.calls():
            if call["id"] in seen or call["key"] is None:
                continue
            seen.add(call["id"])
            if call["n"] < last.get(call["key"], -1):
                found.append(call)
            last[call["key"]] = max(call["n"], last.get(call["key"], -1))
        return found


class World:
    """Messages, workers and the receiver of one test."""

    def __init__(self, dsn: str, conn: asyncpg.Connection, fleet, folder: Path) -> None:
        self.dsn, self.conn, self._fleet = dsn, conn, fleet
        self.log = str(folder / "receiver.log")
        self.receiver = Receiver(self.log)
        self.app = Interlock(dsn)

    async def publish(self, drafts: list[Draft]):
        return await self.app.outbox.apublish_many(self.conn, drafts)

    async def worker(self, *, env: dict | None = None, **options):
        process = self.start(env=env, **options)
        await process.expect("up", 60)
        return process

    def start_naive(self, env: dict):
        return self._fleet.start(serve_naively, self.dsn, self.log, env=env)

    def start(self, *, env: dict | None = None, **options):
        return self._fleet.start(serve, self.dsn, self.log, options, env=env)

    async def states(self) -> dict[str, int]:
        rows = await self.conn.fetch("SELECT state, count(*) FROM interlock.outbox GROUP BY 1")
        return dict(map(tuple, rows))

    async def all_ended(self, timeout: float = 120) -> dict[str, int]:  # noqa: ASYNC109  named by what is awaited
        async def ended() -> dict[str, int] | None:
            states = await self.states()
            return None if "pending" in states else states

        return await eventually(ended, timeout, "the end of every message")
