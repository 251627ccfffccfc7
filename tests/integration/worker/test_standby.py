"""One batch ahead: no more bodies than slots, nothing waits behind a long body, nothing that stood by is lost."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from datetime import timedelta

import pytest

from interlock import failpoints
from interlock.observe.events.work import ExecutionReleased, SettleRefused, WorkClaimed
from interlock.store.background_job import BackgroundJobs
from interlock.worker import standby
from interlock.worker.filling import Filling
from interlock.worker.job import Job
from interlock.worker.standby import Standby
from interlock.worker.worker import Worker
from tests.harness.waiting import eventually

tenant = ContextVar("tenant", default="nobody's")


@pytest.fixture(autouse=True)
def inert_failpoints():
    yield
    failpoints.disarm()


@pytest.fixture
def ahead(monkeypatch):
    """Ten more than there are slots are always brought, whatever the pace; for a minute nobody loses patience."""
    reserve = Filling.reserve
    monkeypatch.setattr(Filling, "reserve", lambda self, _=0: reserve(self, 10))
    monkeypatch.setattr(standby, "PATIENCE", 60)


async def most_bodies_at_once(works, jobs: int = 300) -> int:
    app, running, most = works.new_app(worker_slots=5), 0, 0

    @app.train
    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    handles = await app.aenqueue_many([work.bind() for _ in range(jobs)])
    await works.start(app)
    for handle in handles:
        await handle.aresult(60)
    return most


@pytest.fixture
def stood_by(monkeypatch) -> list[int]:
    """How many stood by after each fill."""
    filled, counts = Standby.filled, []

    def counted(self, jobs) -> None:
        jobs = list(jobs)
        counts.append(len(jobs))
        filled(self, jobs)

    monkeypatch.setattr(Standby, "filled", counted)
    return counts


async def test_short_bodies_have_others_standing_by_and_never_more_than_slots_run(works, stood_by):
    assert await most_bodies_at_once(works) == 5
    assert max(stood_by) > 5


async def test_control_without_standing_by_all_that_is_brought_runs_at_once(works, ahead, monkeypatch):
    take = Worker._take

    def begin_all(self, claims, reservation) -> None:
        take(self, claims, reservation)
        self._begin(self._standby.dismiss())

    monkeypatch.setattr(Worker, "_take", begin_all)
    assert await most_bodies_at_once(works) > 5


async def test_bodies_that_take_their_time_have_nobody_standing_by(works, stood_by):
    app = works.new_app(worker_slots=2)

    @app.train
    async def work() -> None:
        await asyncio.sleep(0.3)

    handles = await app.aenqueue_many([work.bind() for _ in range(8)])
    await works.start(app)
    for handle in handles:
        await handle.aresult(60)
    assert max(stood_by) == 0


class Line:
    """A train whose first body holds the only slot until it is let go, with others behind it."""

    def __init__(self, works, *, others: int, **options) -> None:
        self.works, self.others, self.ran = works, others, []
        self.app, self.go_on = works.new_app(worker_slots=1, **options), asyncio.Event()

        @self.app.train(name="line")
        async def here(n: int) -> None:
            if n == 0:
                await self.go_on.wait()
            self.ran.append(n)

        self.train = here

    async def start(self) -> None:
        """Until all are held here: the first runs, the others stand by."""
        self.handles = await self.app.aenqueue_many([self.train.bind(n) for n in range(self.others + 1)])
        self.server = self.app.running(["worker"])
        await self.server.__aenter__()
        await eventually(lambda: len(self.works.told(WorkClaimed)) == self.others + 1, 60, "all of them claimed")

    async def stop(self) -> None:
        await self.server.__aexit__(None, None, None)

    async def elsewhere(self) -> list[int]:
        """Another server takes up what it can get, until all but the first have run."""
        other, ran = self.works.new_app(worker_slots=1), []

        @other.train(name="line")
        async def there(n: int) -> None:
            ran.append(n)

        await self.works.start(other)
        for handle in self.handles[1:]:
            await handle.aresult(60)
        return ran


async def test_behind_a_long_body_they_go_to_another_server_with_the_same_attempt(works, yard, ahead, monkeypatch):
    monkeypatch.setattr(standby, "PATIENCE", 0.1)
    line = Line(works, others=4)
    await line.start()
    assert sorted(await line.elsewhere()) == [1, 2, 3, 4]
    assert not line.ran
    assert [event.reason for event in works.told(ExecutionReleased)] == ["it found no slot in time"] * 4
    assert await yard.conn.fetchval("SELECT max(attempt) + max(crashes) FROM interlock.execution") == 1
    line.go_on.set()
    await line.handles[0].aresult(60)
    await line.stop()


async def test_control_without_an_end_of_patience_they_wait_for_the_long_body(works, ahead):
    line = Line(works, others=4)
    await line.start()
    there = asyncio.create_task(line.elsewhere())
    await asyncio.wait({there}, timeout=1)
    assert not there.done()
    line.go_on.set()
    assert await there == []
    assert line.ran == [0, 1, 2, 3, 4]
    await line.stop()


async def test_what_was_passed_on_without_an_answer_is_passed_on_once(works, yard, ahead, monkeypatch):
    monkeypatch.setattr(standby, "PATIENCE", 0.1)
    release, lost = BackgroundJobs.release_if_held, []

    async def unheard(self, conn, ids, tokens):
        released = await release(self, conn, ids, tokens)
        if not lost:
            lost.extend(ids)
            await conn.execute("COMMIT")
            raise ConnectionResetError("the connection ended")
        return released

    monkeypatch.setattr(BackgroundJobs, "release_if_held", unheard)
    line = Line(works, others=4)
    await line.start()
    assert sorted(await line.elsewhere()) == [1, 2, 3, 4]
    assert len(lost) == 4
    assert not line.ran
    line.go_on.set()
    await line.stop()


async def test_a_server_that_must_stop_hands_them_back(works, ahead):
    line = Line(works, others=4, shutdown_timeout=timedelta(seconds=0.2))
    await line.start()
    await line.stop()
    assert not line.ran
    assert [event.reason for event in works.told(ExecutionReleased)] == ["its server shuts down"] * 5
    assert {1, 2, 3, 4} <= set(await line.elsewhere())
    await line.app.aclose()


async def test_what_a_body_sets_in_its_context_is_not_there_for_the_one_that_gets_its_slot(works, ahead):
    app, seen = works.new_app(worker_slots=1), []

    @app.train
    async def work(n: int) -> None:
        seen.append(tenant.get())
        tenant.set(f"of job {n}")

    handles = await app.aenqueue_many([work.bind(n) for n in range(8)])
    await works.start(app)
    for handle in handles:
        await handle.aresult(60)
    assert seen == ["nobody's"] * 8


async def test_what_is_cancelled_while_it_stands_by_never_runs(works, yard, ahead, monkeypatch):
    mark, marked = Job.mark, asyncio.Event()

    def noticed(self, cause) -> bool:
        marked.set()
        return mark(self, cause)

    monkeypatch.setattr(Job, "mark", noticed)
    line = Line(works, others=2)
    await line.start()
    one = await yard.conn.fetchval("SELECT id FROM interlock.execution WHERE entry_id = $1", line.handles[1].id)
    await line.app.acancel_execution(one)
    await asyncio.wait_for(marked.wait(), 60)
    line.go_on.set()
    assert (await works.ended(one, 60))["state"] == "cancelled"
    await line.handles[2].aresult(60)
    assert line.ran == [0, 2]
    await line.stop()


async def test_what_is_lost_while_it_stands_by_is_run_by_whoever_recovers_it(works, yard, ahead):
    line = Line(works, others=2)
    await line.start()
    await yard.conn.execute(
        "UPDATE interlock.server SET state = 'lost', ended_at = clock_timestamp() WHERE state = 'alive'"
    )
    await eventually(lambda: bool(works.told(SettleRefused)), 60, "the loss of the lease")
    line.go_on.set()
    for handle in line.handles:
        await handle.aresult(60)
    assert sorted(line.ran) == [0, 1, 2]
    await line.stop()


async def place_of_a_job_that_waits(works, yard) -> int:
    """After how many of 300 bodies that fill the only slot a job runs that appears among those to be claimed."""
    app, order = works.new_app(worker_slots=1), []

    @app.train
    async def work(n: int) -> None:
        if n == 50:
            await yard.dispatch(input={"n": -1})
        await asyncio.sleep(0.002)
        order.append(n)

    handles = await app.aenqueue_many([work.bind(n) for n in range(300)])
    await works.start(app)
    for handle in handles:
        await handle.aresult(60)
    await eventually(lambda: -1 in order, 60, "the job that waited")
    return order.index(-1)


async def test_jobs_that_wait_to_be_claimed_get_a_slot_before_what_would_stand_by(works, yard, monkeypatch):
    monkeypatch.setattr(Standby, "room", property(lambda self: 0 if self else 10))
    assert await place_of_a_job_that_waits(works, yard) < 100


async def test_control_with_others_always_standing_by_they_wait_for_the_end(works, yard, ahead):
    assert await place_of_a_job_that_waits(works, yard) > 250
