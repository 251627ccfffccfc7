"""Several servers dispatch and work under a cap of a group and a cap of the whole, changed while they run.

The judge is the database's own record: an execution counts from its dispatch to its end, and at no instant may more of
them overlap than the cap of that instant allows.
"""

from __future__ import annotations

import asyncio
import signal
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import asyncpg
import pytest

from tests.harness.child import tell
from tests.harness.waiting import eventually

if TYPE_CHECKING:
    from datetime import datetime

GLOBAL_CAP = 5
GROUP_CAPS = (3, 6, 2)
TICK = timedelta(seconds=3)  # longer than any dispatch tick may live: its idle timeout ends it


class Span(NamedTuple):
    began: datetime
    ended: datetime
    group: str


async def serve(dsn: str) -> None:
    """A server whose jobs take a moment, some of them in a thread."""
    app = declare(dsn)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with app.running(["worker"]):
        tell("serving")
        await stopped.wait()


def declare(dsn: str):
    import time

    from interlock import Interlock
    from tests.harness.profile import SHORT_LEASES

    app = Interlock(dsn, **SHORT_LEASES, max_active_jobs=GLOBAL_CAP, worker_slots=4)
    app.group("capped")

    @app.train(group="capped")
    async def narrow(milliseconds: int) -> None:
        await asyncio.sleep(milliseconds / 1000)

    @app.train
    def wide(milliseconds: int) -> None:
        time.sleep(milliseconds / 1000)

    app.narrow, app.wide = narrow, wide
    return app


async def set_cap(conn: asyncpg.Connection, cap: int) -> datetime:
    await conn.execute("UPDATE interlock.manifest_group SET max_active_jobs = $1 WHERE name = 'capped'", cap)
    return await conn.fetchval("SELECT clock_timestamp()")


async def enqueue(dsn: str, jobs: int) -> None:
    app = declare(dsn)
    async with app:
        runs = [(app.narrow if number % 2 else app.wide).bind(number % 5) for number in range(jobs)]
        for start in range(0, jobs, 500):
            await app.aenqueue_many(runs[start : start + 500])


async def spans(conn: asyncpg.Connection) -> list[Span]:
    rows = await conn.fetch(
        "SELECT e.created_at, e.ended_at, g.name FROM interlock.execution e"
        " JOIN interlock.manifest_group g ON g.id = e.group_id ORDER BY e.created_at"
    )
    return [Span(*row) for row in rows]


def peaks(found: list[Span]) -> list[tuple[datetime, int]]:
    """How many are active just after each dispatch."""
    events = sorted([(span.began, 1) for span in found] + [(span.ended, -1) for span in found])
    active, result = 0, []
    for at, change in events:
        active += change
        if change > 0:
            result.append((at, active))
    return result


def violations(found: list[Span], caps: list[tuple[datetime, int]]) -> list[tuple[datetime, int, int]]:
    """Dispatches that went beyond every cap that a tick of that moment may have read."""
    changes = [*caps, (max(span.ended for span in found) + TICK, 0)]
    wrong = []
    for at, active in peaks(found):
        allowed = max(cap for (since, cap), (until, _) in pairwise(changes) if since <= at and until + TICK > at)
        if active > allowed:
            wrong.append((at, active, allowed))
    return wrong


async def completed(conn: asyncpg.Connection) -> int:
    return await conn.fetchval("SELECT count(*) FROM interlock.execution WHERE state = 'completed'")


@pytest.mark.parametrize(
    ("processes", "jobs"),
    [
        pytest.param(4, 600, id="reduced"),
        pytest.param(8, 5000, id="full", marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
    ],
)
async def test_no_cap_is_ever_exceeded_while_servers_compete_and_caps_change(fleet, migrated, processes, jobs):
    conn = await asyncpg.connect(migrated)
    try:
        began = await conn.fetchval("SELECT clock_timestamp()")
        await conn.execute("INSERT INTO interlock.manifest_group (name, max_active_jobs) VALUES ('capped', $1)", 3)
        await enqueue(migrated, jobs)
        servers = fleet.start_many(processes, serve, migrated)
        for server in servers:
            await server.expect("serving", 60)
        caps = [(began, GROUP_CAPS[0])]
        for number, cap in enumerate(GROUP_CAPS[1:], 1):
            part = jobs * number // len(GROUP_CAPS)

            async def part_is_done(part: int = part) -> bool:
                return await completed(conn) >= part

            await eventually(part_is_done, 300, f"{part} jobs")
            caps.append((await set_cap(conn, cap), cap))

        async def all_done() -> bool:
            return await completed(conn) == jobs

        await eventually(all_done, 300, "the end of all jobs")
        found = await spans(conn)
        capped = [span for span in found if span.group == "capped"]
        assert violations(capped, caps) == []
        assert violations(found, [(began, GLOBAL_CAP)]) == []
        assert max(active for _, active in peaks(found)) == GLOBAL_CAP
        assert max(active for _, active in peaks(capped)) >= GROUP_CAPS[0]
    finally:
        await conn.close()


@pytest.mark.parametrize("backlog", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
async def test_a_full_group_with_a_long_backlog_above_lets_the_others_run_at_once(fleet, migrated, backlog):
    conn = await asyncpg.connect(migrated)
    app = declare(migrated)
    try:
        await conn.execute(
            "INSERT INTO interlock.manifest_group (name, max_active_jobs, priority) VALUES ('capped', $1, 31)",
            GROUP_CAPS[0],
        )
        server = fleet.start(serve, migrated)
        await server.expect("serving", 60)
        async with app:
            await app.aenqueue_many([app.narrow.bind(600_000) for _ in range(GROUP_CAPS[0])])
            for _ in range(0, backlog, 1000):
                await app.aenqueue_many([app.narrow.bind(1) for _ in range(1000)])

            async def is_full() -> bool:
                running = "SELECT count(*) FROM interlock.execution WHERE state = 'in_progress'"
                return await conn.fetchval(running) == GROUP_CAPS[0]

            await eventually(is_full, 60, "a full group")
            others = await app.aenqueue_many([app.wide.bind(1) for _ in range(5)])
            for other in others:
                await other.aresult(timeout=60)
        waiting = "SELECT count(*) FROM interlock.work_queue WHERE state = 'queued' AND train = 'narrow'"
        assert await conn.fetchval(waiting) == backlog
    finally:
        await conn.close()


def test_control_the_judge_sees_one_too_many():
    from datetime import UTC, datetime

    def at(second: float) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=second)

    three = [Span(at(10 + number), at(20), "capped") for number in range(3)]
    assert violations(three, [(at(0), 3)]) == []
    assert violations([*three, Span(at(15), at(16), "capped")], [(at(0), 3)]) == [(at(15), 4, 3)]
    assert violations(three, [(at(0), 3), (at(5), 2)]) == [(at(12), 3, 2)]
    assert violations(three, [(at(0), 3), (at(10), 2)]) == []
