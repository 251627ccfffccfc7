"""The dispatcher fills the slots of its own worker: nothing is lost with an answer, no slot is filled twice, what waits
to be claimed comes first, and a server that was lost meanwhile settles nothing.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from interlock import failpoints
from interlock.observe.events.work import ExecutionReleased, SettleRefused
from interlock.runtime import doubts
from interlock.store.background_job import BackgroundJobs
from interlock.worker.claim import Claiming
from interlock.worker.filling import Filling
from interlock.worker.slots import Slots
from interlock.worker.worker import Worker
from tests.harness.waiting import eventually

if TYPE_CHECKING:
    from interlock.model.execution import Reservation

UNAWARE = {"lease": timedelta(minutes=9), "heartbeat": timedelta(minutes=3)}


@pytest.fixture(autouse=True)
def inert_failpoints():
    yield
    failpoints.disarm()


@pytest.fixture
def answer_lost(yard):
    """The first dispatch that hands something over is committed, and its answer never arrives."""
    lost: list[int] = []

    async def lose() -> None:
        if not lost and (held := await yard.conn.fetch("SELECT id FROM interlock.execution WHERE ended_at IS NULL")):
            lost.extend(row["id"] for row in held)
            raise ConnectionResetError("the connection ended")

    failpoints.arm("dispatch.committed", lose)
    return lost


async def test_no_job_is_offered_or_claimed_where_the_dispatcher_has_slots(works, yard):
    @works.app.train
    async def work(n: int) -> int:
        return n

    await yard.conn.execute("ALTER TABLE interlock.background_job ADD CONSTRAINT nobody_waits CHECK (false)")
    handles = await works.app.aenqueue_many([work.bind(n) for n in range(120)])
    await works.start()
    assert [await handle.aresult(60) for handle in handles] == list(range(120))


async def test_what_was_dispatched_without_an_answer_is_run_once(works, yard, answer_lost):
    ran = []

    @works.app.train
    async def work(n: int) -> None:
        ran.append(n)

    handles = await works.app.aenqueue_many([work.bind(n) for n in range(5)])
    await works.start()
    for handle in handles:
        await handle.aresult(60)
    assert sorted(ran) == list(range(5))
    assert len(answer_lost) == 5
    assert set((await yard.states()).values()) == {"completed"}


async def test_control_without_the_look_back_what_was_dispatched_is_run_by_nobody(
    works, yard, answer_lost, monkeypatch
):
    async def nothing(_self, _conn, **_) -> list:
        return []

    monkeypatch.setattr(BackgroundJobs, "recall", nothing)

    @works.app.train
    async def work() -> None: ...

    await work.aenqueue()
    await works.start()
    await eventually(lambda: bool(answer_lost), 60, "an answer that is lost")
    await (await work.aenqueue()).aresult(60)
    assert (await yard.execution(answer_lost[0]))["state"] == "in_progress"


@pytest.fixture
def first_look_too_early(monkeypatch):
    """A statement whose client is gone goes on: the first look comes before its commit."""
    recall, looks = BackgroundJobs.recall, []

    async def early(self, conn, **held) -> list:
        looks.append(held)
        return [] if len(looks) == 1 else await recall(self, conn, **held)

    monkeypatch.setattr(BackgroundJobs, "recall", early)
    monkeypatch.setattr(doubts, "EVERY", 0.05)
    return looks


async def test_what_is_committed_after_the_first_look_is_handed_on_and_run_once(
    works, yard, answer_lost, first_look_too_early
):
    ran = []

    @works.app.train
    async def work(n: int) -> None:
        ran.append(n)

    handles = await works.app.aenqueue_many([work.bind(n) for n in range(5)])
    await works.start()
    for handle in handles:
        await handle.aresult(60)
    assert sorted(ran) == list(range(5))
    assert {event.execution_id for event in works.told(ExecutionReleased)} == set(answer_lost)
    assert {row["attempt"] for row in await yard.conn.fetch("SELECT attempt FROM interlock.execution")} == {1}


async def test_control_without_a_second_look_what_is_committed_late_is_run_by_nobody(
    works, yard, answer_lost, first_look_too_early, monkeypatch
):
    monkeypatch.setattr(doubts, "MOST", 0)

    @works.app.train
    async def work() -> None: ...

    await work.aenqueue()
    await works.start()
    await eventually(lambda: bool(first_look_too_early), 60, "the first look")
    await (await work.aenqueue()).aresult(60)
    assert (await yard.execution(answer_lost[0]))["state"] == "in_progress"


async def test_nobody_looks_for_ever_for_what_was_never_committed(works, first_look_too_early, monkeypatch):
    monkeypatch.setattr(doubts, "LATEST", 0.2)
    tick, ticked = Claiming.tick, []

    async def told(self) -> timedelta:
        ticked.append(self)
        return await tick(self)

    async def lose_nothing() -> None:
        failpoints.disarm("dispatch.committed")
        raise ConnectionResetError("the connection ended")

    monkeypatch.setattr(Claiming, "tick", told)
    failpoints.arm("dispatch.committed", lose_nothing)

    @works.app.train
    async def work() -> None: ...

    await works.start()
    await eventually(lambda: len(first_look_too_early) > 2, 60, "more looks")
    await eventually(lambda: not ticked[-1]._doubts, 60, "the end of doubt")


async def most_at_once(works, yard, monkeypatch) -> int:
    """How many jobs three slots get when the dispatcher asks for slots while a claim is under way."""
    app, asked, running, most, looks = works.new_app(worker_slots=3), asyncio.Event(), 0, 0, 0
    reserve, take = Worker.reserve, Slots.take

    def counted(self, job) -> None:
        nonlocal most
        take(self, job)
        most = max(most, len(self.held))

    def noticed(self) -> Reservation | None:
        nonlocal looks
        looks += running >= 3
        reservation = reserve(self)
        if claiming.is_set():
            asked.set()
        return reservation

    claiming, claimed_once = asyncio.Event(), []

    async def claimed() -> None:
        if not claimed_once:
            claimed_once.append(True)
            await later.aenqueue()
            claiming.set()
            await asked.wait()

    monkeypatch.setattr(Worker, "reserve", noticed)
    monkeypatch.setattr(Slots, "take", counted)
    failpoints.arm("worker.claimed", claimed)

    async def body() -> None:
        nonlocal running
        running += 1
        # Whatever was brought after the first look is held by the third.
        await eventually(lambda: most > 3 or looks >= 3, what="a fourth job, or looks that found no slot")
        running -= 1

    @app.train
    async def work() -> None:
        await body()

    @app.train
    async def later() -> None:
        await body()

    runs = [await yard.dispatch() for _ in range(3)]
    await works.start(app)
    for run in runs:
        await works.ended(run)
    await eventually(lambda: running == 0 and asked.is_set(), 60, "the end of all bodies")
    return most


async def test_the_claim_and_the_dispatcher_never_fill_a_slot_twice(works, yard, monkeypatch):
    assert await most_at_once(works, yard, monkeypatch) == 3


async def test_control_without_the_reservation_they_do(works, yard, monkeypatch):
    def whatever_is_free(self, ahead: int = 0) -> Reservation | None:
        self._current = None
        return reserve(self, ahead)

    reserve = Filling.reserve
    monkeypatch.setattr(Filling, "reserve", whatever_is_free)
    assert await most_at_once(works, yard, monkeypatch) > 3


async def test_a_train_with_a_limit_of_its_own_keeps_it(works):
    running = most = 0

    @works.app.train(concurrency=2)
    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1

    handles = await works.app.aenqueue_many([work.bind() for _ in range(12)])
    await works.start()
    for handle in handles:
        await handle.aresult(60)
    assert most == 2


async def test_jobs_that_wait_to_be_claimed_are_not_starved_by_a_long_queue(works, yard):
    app, order = works.new_app(worker_slots=1), []

    @app.train
    async def work(n: int) -> None:
        order.append(n)

    await app.aenqueue_many([work.bind(n) for n in range(200)])
    waiting = await yard.dispatch(input={"n": -1}, priority=9)
    await works.start(app)
    await works.ended(waiting)
    assert order.index(-1) < 20


async def test_a_server_that_is_marked_lost_before_the_commit_settles_nothing(works, yard):
    """It does not hear of it, and its outcome comes when another runs the work."""
    lost, other, began, begins_again = works.new_app(**UNAWARE), works.new_app(), asyncio.Event(), asyncio.Event()

    @lost.train(name="work")
    async def stale() -> str:
        began.set()
        await begins_again.wait()
        return "stale"

    @other.train(name="work")
    async def fresh() -> str:
        begins_again.set()
        await eventually(lambda: works.told(SettleRefused), what="the refusal of the stale outcome")
        return "fresh"

    lose_the_server_at(yard, "dispatch.before_commit")
    # A cap, so that the dispatch has steps to be lost between.
    await yard.conn.execute("UPDATE interlock.manifest_group SET max_active_jobs = 5")
    handle = await stale.aenqueue()
    await works.start(lost)
    await asyncio.wait_for(began.wait(), 60)
    await works.start(other)
    assert await handle.aresult(60) == "fresh"
    assert sorted((await yard.states()).values()) == ["completed", "failed"]


async def test_a_server_that_is_marked_lost_before_it_takes_entries_takes_none(works, yard):
    @works.app.train
    async def work() -> None: ...

    lose_the_server_at(yard, "dispatch.loaded")
    await yard.conn.execute("UPDATE interlock.manifest_group SET max_active_jobs = 5")
    handle = await work.aenqueue()
    await works.start()
    await handle.aresult(60)
    assert list((await yard.states()).values()) == ["completed"]


def lose_the_server_at(yard, failpoint: str) -> None:
    """In the first tick that has entries in hand."""
    loaded = False

    async def load() -> None:
        nonlocal loaded
        loaded = True

    async def lose() -> None:
        if loaded or failpoint == "dispatch.loaded":
            failpoints.disarm(failpoint)
            await yard.conn.execute(
                "UPDATE interlock.server SET state = 'lost', ended_at = clock_timestamp() WHERE state = 'alive'"
            )

    failpoints.arm("dispatch.loaded", load)
    failpoints.arm(failpoint, lose)
