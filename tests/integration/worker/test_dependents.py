"""A dependent runs for every success of its parent that it has not consumed, however late that success is committed."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import asyncpg
import pytest

from interlock import Interlock, every
from interlock.manifests.write import Writer
from interlock.model.lifecycle import ExecutionState
from interlock.model.outcome import Ending
from interlock.testing import stepper
from tests.harness.waiting import eventually

PARENT_ENDED_AFTER_CHILD_BEGAN = """
SELECT max(e.ended_at) FILTER (WHERE m.external_id = 'parent' AND e.state = 'completed')
    > max(e.started_at) FILTER (WHERE m.external_id = 'child')
FROM interlock.execution e JOIN interlock.manifest m ON m.id = e.manifest_id
"""


class Family:
    """A parent and its dependent on a server that moves step by step; both have run once."""

    def __init__(self, app: Interlock, step, yard, executions) -> None:
        self.app, self.step, self.yard, self.executions = app, step, yard, executions

    async def claimed(self, manifest: str) -> tuple[int, Ending]:
        """A run of the manifest in somebody's hands, and the end that it is going to have."""
        if manifest != "child":
            await self.app.atrigger(manifest)
        await self.step.tick("dispatch")
        run = await self.yard.conn.fetchval(
            "SELECT e.id FROM interlock.execution e JOIN interlock.manifest m ON m.id = e.manifest_id"
            " WHERE m.external_id = $1 AND e.ended_at IS NULL",
            manifest,
        )
        return run, Ending(run, await self.yard.claimed(run), ExecutionState.COMPLETED, output="1")

    async def end(self, conn, ending: Ending) -> None:
        await self.executions.end(conn, [ending], now=self.step.now)

    async def put_below(self, parent: str, external_id: str) -> None:
        await self.app.aput_schedule(external_id, self.app.trains.get("work").bind(), parent=parent)

    async def queued_for(self) -> list[str]:
        """The fires of the child that wait."""
        await self.step.tick("manifests")
        rows = await self.yard.conn.fetch(
            "SELECT fire_key FROM interlock.work_queue q JOIN interlock.manifest m ON m.id = q.manifest_id"
            " WHERE m.external_id = 'child' AND q.state = 'queued'"
        )
        return [row[0] for row in rows]


@pytest.fixture
async def family(migrated, yard, executions):
    app = Interlock(migrated)

    @app.train
    async def work() -> None: ...

    app.schedule("parent", work.bind(), every(hours=1)).then("child", work.bind())
    app.schedule("stranger", work.bind())
    async with AsyncExitStack() as stack:
        step = await stack.enter_async_context(stepper(app))
        await step.drain()
        yield Family(app, step, yard, executions)


async def test_a_parent_that_commits_late_is_not_overlooked(migrated, family):
    run, ending = await family.claimed("parent")
    late = await asyncpg.connect(migrated)
    try:
        transaction = late.transaction()
        await transaction.start()
        await family.end(late, ending)
        assert await family.queued_for() == []
        await transaction.commit()
    finally:
        await late.close()
    assert await family.queued_for() == [str(run)]


async def test_a_child_that_starts_between_the_end_and_the_commit_of_its_parent_misses_nothing(migrated, family):
    """The control is the obvious rule itself: by their timestamps the child would have nothing to do."""
    run, ending = await family.claimed("parent")
    late = await asyncpg.connect(migrated)
    try:
        transaction = late.transaction()
        await transaction.start()
        await family.end(late, ending)
        await family.app.atrigger("child")
        _, of_child = await family.claimed("child")
        await transaction.commit()
    finally:
        await late.close()
    await family.end(family.yard.conn, of_child)
    assert not await family.yard.conn.fetchval(PARENT_ENDED_AFTER_CHILD_BEGAN)
    assert await family.queued_for() == [str(run)]


async def test_a_success_while_the_dependent_runs_is_not_swallowed(family):
    _, first = await family.claimed("parent")
    await family.end(family.yard.conn, first)
    await family.queued_for()
    _, of_child = await family.claimed("child")
    run, second = await family.claimed("parent")
    await family.end(family.yard.conn, second)
    assert await family.queued_for() == []
    await family.end(family.yard.conn, of_child)
    assert await family.queued_for() == [str(run)]


async def test_several_successes_meanwhile_make_one_run_for_the_last(family):
    _, first = await family.claimed("parent")
    await family.end(family.yard.conn, first)
    await family.queued_for()
    _, of_child = await family.claimed("child")
    for _ in range(3):
        run, success = await family.claimed("parent")
        await family.end(family.yard.conn, success)
    await family.end(family.yard.conn, of_child)
    assert await family.queued_for() == [str(run)]


async def test_a_parent_and_its_dependent_that_end_at_once_both_count(migrated, family, door):
    _, first = await family.claimed("parent")
    await family.end(family.yard.conn, first)
    await family.queued_for()
    _, of_child = await family.claimed("child")
    run, second = await family.claimed("parent")
    late = await asyncpg.connect(migrated)
    try:
        transaction = late.transaction()
        await transaction.start()
        await family.end(late, second)

        async def end_child() -> None:
            async with door.transaction() as conn:
                await family.end(conn, of_child)

        waiting = asyncio.create_task(end_child())
        await asyncio.wait({waiting}, timeout=0.3)
        await transaction.commit()
        await waiting
    finally:
        await late.close()
    assert await family.queued_for() == [str(run)]


WAITS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


async def hung_below_what_is_about_to_succeed(dsn: str, family, external_id: str) -> bool:
    """Another parent has ended its first run, uncommitted, when the manifest is put below it; is it woken?"""
    _, ending = await family.claimed("stranger")
    late = await asyncpg.connect(dsn)
    try:
        transaction = late.transaction()
        await transaction.start()
        await family.end(late, ending)
        putting = asyncio.create_task(family.put_below("stranger", external_id))

        async def done_or_waits() -> bool:
            return putting.done() or bool(await family.yard.conn.fetchval(WAITS))

        await eventually(done_or_waits, 60, "the put")
        await transaction.commit()
        await putting
    finally:
        await late.close()
    return await family.yard.conn.fetchval(
        "SELECT next_run_at IS NOT NULL FROM interlock.manifest WHERE external_id = $1", external_id
    )


@pytest.mark.parametrize("external_id", ["new", "child"])
async def test_a_success_that_is_committed_while_a_dependent_is_hung_below_wakes_it(migrated, family, external_id):
    assert await hung_below_what_is_about_to_succeed(migrated, family, external_id)


async def test_control_without_a_hold_on_the_parent_nobody_wakes_it(migrated, family, monkeypatch):
    monkeypatch.setattr(Writer, "_new_parents", lambda *_: set())
    assert not await hung_below_what_is_about_to_succeed(migrated, family, "new")
