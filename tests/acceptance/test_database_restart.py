"""After a power cut of PostgreSQL every loop of a running server works again within seconds of its return."""

from __future__ import annotations

import asyncio
import time

import asyncpg
import pytest

from interlock import Interlock
from interlock.observe.events import ListenLost, ListenReady, ServerLost
from interlock.runtime.loop import Loop
from interlock.store.listen import NoticeHub
from interlock.store.notify import channel_of
from tests.harness.profile import SHORT_LEASES
from tests.harness.waiting import eventually

BACK_WITHIN = 5.0
LONGEST_PAUSE_AFTER = 5  # failures; from then on the pause between two tries no longer grows


@pytest.fixture
def loops(monkeypatch) -> list[Loop]:
    """Every loop that runs, whoever made it and in whichever thread."""
    found: list[Loop] = []
    run = Loop.run

    async def remember(self) -> None:
        found.append(self)
        await run(self)

    monkeypatch.setattr(Loop, "run", remember)
    return found


@pytest.fixture
def hubs(monkeypatch) -> list[NoticeHub]:
    found: list[NoticeHub] = []
    make = NoticeHub.__init__

    def remember(self, *arguments, **options) -> None:
        found.append(self)
        make(self, *arguments, **options)

    monkeypatch.setattr(NoticeHub, "__init__", remember)
    return found


def all_ticked(loops: list[Loop]) -> bool:
    """Whether each has ticked once; some would wait for an hour before they do."""
    for loop in loops:
        if not loop.ticks:
            loop.wake()
    return {"keeper", "notices", "recovery"} <= {loop.name for loop in loops if loop.ticks} and all(
        loop.ticks for loop in loops
    )


async def power_cut(postgres, loops: list[Loop]) -> tuple[float, set[str]]:
    """Answers when PostgreSQL was back, and which loops had failed so often by then that their pause is the longest."""
    await asyncio.to_thread(postgres.stop, "immediate")
    down = time.monotonic()
    for loop in loops:
        loop.wake()  # some would sleep through the outage

    def noticed(loop: Loop) -> bool:
        needs_no_database = (loop.last_tick_at or 0) > down
        return loop.failures >= LONGEST_PAUSE_AFTER or needs_no_database

    await eventually(lambda: all(map(noticed, loops)), 60, "the loops in trouble")
    in_trouble = {loop.name for loop in loops if loop.failures}
    await asyncio.to_thread(postgres.start)
    return time.monotonic(), in_trouble


async def all_tick_again(loops: list[Loop], back: float) -> dict[str, float]:
    """How long after the return each loop had its first good tick."""
    first: dict[str, float] = {}

    def look() -> bool:
        for loop in loops:
            if not loop.failures:
                first.setdefault(loop.name, (loop.last_tick_at or 0) - back)
        return len(first) == len({loop.name for loop in loops})

    await eventually(look, 60, "a good tick of every loop")
    return first


async def send(dsn: str, topic: str) -> None:
    conn = await asyncpg.connect(dsn, timeout=60)
    try:
        await conn.execute("SELECT pg_notify($1, $2)", channel_of("interlock"), topic)
    finally:
        await conn.close()


async def survive(postgres, loops: list[Loop], hubs: list[NoticeHub], cuts: int) -> None:
    events, heard = [], []
    app = Interlock(postgres.dsn, **SHORT_LEASES)
    app.events.subscribe(events.append)
    app.train(idle)  # a worker without trains asks for nothing
    async with app.running() as keeper:
        me = keeper.server
        await eventually(lambda: all_ticked(loops), 60, "a running server")
        hubs[0].subscribe("work", heard.append)
        for number in range(1, cuts + 1):
            back, in_trouble = await power_cut(postgres, loops)
            assert in_trouble >= {"keeper", "notices", "recovery", "retention", "worker"}, in_trouble
            late = await all_tick_again(loops, back)
            assert max(late.values()) < BACK_WITHIN, late
            await eventually(lambda number=number: seen(events, ListenReady) == number + 1)
            assert seen(events, ListenLost) == number
            await send(postgres.dsn, f"work:{number}")
            await eventually(lambda number=number: str(number) in heard, 60, "the notice after the return")
        assert keeper.server == me
        assert seen(events, ServerLost) == 0


async def idle() -> None:
    """Work that never comes."""


def seen(events: list, kind: type) -> int:
    return sum(isinstance(event, kind) for event in tuple(events))


async def test_every_loop_ticks_within_five_seconds_of_the_return_of_postgresql(own_postgres, loops, hubs, caplog):
    await survive(own_postgres, loops, hubs, cuts=1)
    assert [record for record in caplog.records if record.name.startswith("asyncpg")] == []


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_every_loop_survives_ten_power_cuts(own_postgres, loops, hubs):
    await survive(own_postgres, loops, hubs, cuts=10)
