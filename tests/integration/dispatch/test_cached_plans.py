"""A plan that was cached when the queue was small does not read the queue whole when it is large."""

from __future__ import annotations

import pytest

from interlock.store.database import Database
from interlock.store.line import Line
from tests.harness.waiting import eventually
from tests.integration.dispatch.ramp import Hands

LARGE = 5_000


class PlansAsItLikes(Database):
    """Without the settings that keep a plan by index."""

    def tick_on(self, conn, *, by_index=False):  # noqa: ARG002  the guard that is switched off
        return super().tick_on(conn)


@pytest.fixture
async def rows_read(ramp):
    """How many rows were read by scans of the whole work queue, once the statistics have arrived."""

    async def rows_read(dispatcher) -> int:
        await dispatcher.close()

        async def ticks_are_counted() -> bool:
            return await ramp.conn.fetchval(
                "SELECT n_tup_upd >= $1 FROM pg_stat_user_tables WHERE relid = 'interlock.work_queue'::regclass", 60
            )

        await eventually(ticks_are_counted, 60, "the statistics of the dispatcher")
        return await ramp.conn.fetchval(
            "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relid = 'interlock.work_queue'::regclass"
        )

    return rows_read


async def grow(ramp, dispatcher) -> None:
    await ramp.conn.execute("ALTER TABLE interlock.work_queue SET (autovacuum_enabled = false)")
    for _ in range(10):
        await ramp.queue()
        await dispatcher.tick()
        await ramp.conn.execute("DELETE FROM interlock.background_job")
    await ramp.queue(LARGE)
    for _ in range(5):
        await dispatcher.tick()
        await ramp.conn.execute("DELETE FROM interlock.background_job")


async def test_a_queue_that_grew_since_its_plans_were_made_is_not_read_whole(ramp, rows_read):
    dispatcher = ramp.dispatcher(hands=Hands(free=0), max_queued_jobs_per_cycle=10)
    await grow(ramp, dispatcher)
    assert await rows_read(dispatcher) < LARGE


async def test_control_as_postgresql_likes_it_every_tick_reads_the_whole_queue(ramp, rows_read):
    door = PlansAsItLikes(ramp.dsn, ramp.door().settings)
    ramp._stack.push_async_callback(door.close)
    dispatcher = ramp.dispatcher(door=door, hands=Hands(free=0), max_queued_jobs_per_cycle=10)
    dispatcher._line = Line(door, "dispatch")
    await grow(ramp, dispatcher)
    assert await rows_read(dispatcher) > LARGE * 5
