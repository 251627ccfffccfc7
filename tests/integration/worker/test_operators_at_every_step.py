"""Whatever a person does while the manager, a dispatcher, a worker or recovery stands in the middle of its tick.

The tick is held at a failpoint, the person acts (and waits where the tick holds a row), then both go on. Afterwards no
marker is missing, and everything that should run again does.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from uuid import uuid4

import pytest

from interlock import Interlock, current_execution, every, failpoints
from interlock.observe.events import MarkersRepaired
from interlock.store.execution import Executions
from interlock.testing import stepper
from tests.harness.waiting import eventually

IDS = ("hourly", "child", "other")
STEPS = [
    ("manifests", "manifests.loaded"),
    ("manifests", "manifests.before_create"),
    ("manifests", "manifests.held"),
    ("manifests", "manifests.before_commit"),
    ("dispatch", "dispatch.counted"),
    ("dispatch", "dispatch.loaded"),
    ("dispatch", "dispatch.before_commit"),
    ("worker", "worker.claimed"),
    ("worker", "settle.before_write"),
    ("recovery", "recovery.marked"),
    ("recovery", "recovery.found"),
]
BEFORE = {"manifests": (), "dispatch": ("manifests",), "worker": ("manifests", "dispatch"), "recovery": ("manifests",)}
WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
LOST = """
WITH server AS (
    INSERT INTO interlock.server (id, name, roles, trains, tags, slots, host, pid, version, state, lease, lease_until,
        renewed_at, steady_since, started_at, ended_at)
    VALUES ($1, 'x', '{}', '{}', '{}', 1, 'h', 1, '0', 'lost', '1 s', now(), now(), now(), now(), now())
), job AS (DELETE FROM interlock.background_job RETURNING execution_id)
UPDATE interlock.execution SET state = 'in_progress', server_id = $1, claim_token = $2, started_at = $3
FROM job WHERE id = job.execution_id
"""


class Line:
    """A parent, its dependent and a stranger, on a server that moves step by step."""

    def __init__(self, dsn: str, yard, stack: AsyncExitStack) -> None:
        self.yard, self._stack, self.fails, self.repairs = yard, stack, False, []
        self.app = app = Interlock(dsn, name="line", max_attempts=1)

        @app.train
        async def work() -> None:
            if self.fails and current_execution().manifest == "hourly":
                raise ValueError("as told")

        self.work = work
        app.schedule("hourly", work.bind(), every(hours=1)).then("child", work.bind())
        app.schedule("other", work.bind(), every(minutes=1))
        app.events.subscribe(self.repairs.append, (MarkersRepaired,))

    async def open(self) -> None:
        self.step = await self._stack.enter_async_context(stepper(self.app))
        await self.step.drain()

    async def prepare(self, act: str, role: str) -> None:
        """What the act is about, and work for the tick to be in the middle of."""
        if act in ("requeue", "acknowledge"):
            self.step.advance(timedelta(hours=1))
            self.fails = True
            await self.step.drain()
            self.fails = False
            assert len(await self.app.dead_letters.alist()) == 1
        if act == "enable":
            await self.app.adisable("hourly")
        self.step.advance(timedelta(hours=1))
        for earlier in BEFORE[role]:
            await self.step.tick(earlier)
        if role == "recovery":
            await self.step.tick("dispatch")
            await self.yard.conn.execute(LOST, uuid4(), uuid4(), self.step.now)

    async def act(self, act: str) -> None:
        match act:
            case "edit":
                await self.app.aput_schedule("hourly", self.work.bind(), every(minutes=45))
            case "requeue":
                for letter in await self.app.dead_letters.alist():
                    await self.app.dead_letters.arequeue(letter.id)
            case "acknowledge":
                for letter in await self.app.dead_letters.alist():
                    await self.app.dead_letters.aacknowledge(letter.id)
            case "cancel group":
                await self.app.acancel_group("default")
            case _:
                await getattr(self.app, f"a{act}")("hourly")

    @asynccontextmanager
    async def held(self, role: str, failpoint: str):
        """A tick of the role stands still there while the block runs."""
        reached, go = asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            if not reached.is_set():
                reached.set()
                await go.wait()

        failpoints.arm(failpoint, wait)
        ticking = asyncio.create_task(self.step.tick(role))
        try:
            async with asyncio.timeout(60):
                await reached.wait()
            yield
        finally:
            go.set()
            failpoints.disarm()
            await ticking

    async def act_in_the_middle(self, act: str, role: str, failpoint: str) -> None:
        async with self.held(role, failpoint):
            acting = asyncio.create_task(self.act(act))

            async def done_or_waits() -> bool:
                return acting.done() or bool(await self.yard.conn.fetchval(WAITS))

            await eventually(done_or_waits, 60, f"{act} at {failpoint}")
        await acting

    async def runs_again(self) -> set[str]:
        """Who completes a run, once all that holds them is taken away and their time has come."""
        for external_id in IDS:
            await self.app.aenable(external_id)
        await self.app.dead_letters.aacknowledge_all()
        last = await self.yard.conn.fetchval("SELECT coalesce(max(id), 0) FROM interlock.execution")
        self.step.advance(timedelta(hours=2))
        await self.step.drain()
        rows = await self.yard.conn.fetch(
            "SELECT m.external_id FROM interlock.execution e JOIN interlock.manifest m ON m.id = e.manifest_id"
            " WHERE e.id > $1 AND e.state = 'completed'",
            last,
        )
        return {row[0] for row in rows}


@pytest.fixture
async def line(migrated, yard):
    async with AsyncExitStack() as stack:
        yield Line(migrated, yard, stack)
    failpoints.disarm()


@pytest.mark.parametrize(
    "act", ["enable", "disable", "edit", "requeue", "acknowledge", "cancel", "cancel group", "trigger"]
)
async def test_an_act_in_the_middle_of_any_step_loses_no_run(line, act):
    await line.open()
    for role, failpoint in STEPS:
        await line.prepare(act, role)
        await line.act_in_the_middle(act, role, failpoint)
        await line.step.tick("sweep")
        assert line.repairs == [], f"{act} at {failpoint}"
        assert await line.runs_again() == set(IDS), f"{act} at {failpoint}"


async def test_control_ends_that_set_no_marker_are_found_out(line, monkeypatch):
    await line.open()

    async def forget(self, conn, ids, now) -> set[int]:
        return set()

    monkeypatch.setattr(Executions, "_unblock_locked", forget)
    await line.prepare("cancel", "dispatch")
    await line.act_in_the_middle("cancel", "dispatch", "dispatch.before_commit")
    await line.step.drain()
    await line.step.tick("sweep")
    assert line.repairs
