"""Work that runs elsewhere: claimed, committed, submitted; what is not taken is queued again or left to a person."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest

from interlock import failpoints
from interlock.dispatch import pause
from interlock.dispatch.component import DispatchComponent
from interlock.dispatch.submit import RemoteDispatch
from interlock.dispatch.submitters.inline import InlineSubmitter
from interlock.dispatch.submitters.postgres import PostgresSubmitter
from interlock.dispatch.submitters.protocol import NoRoom, Route
from interlock.observe.events.work import EntryRefused, SubmitFailed
from interlock.runtime import doubts
from interlock.runtime.loop import Loop
from interlock.store.dispatching import Dispatching
from interlock.store.submitting import Submitting
from tests.harness.waiting import eventually
from tests.integration.dispatch.ramp import Hands

SERVER = uuid4()


class Remote:
    """Takes work, or refuses so many times; sees what the database says at that moment."""

    name = "remote"

    def __init__(self, conn, trains=("far",), refuses: int = 0) -> None:
        self.trains, self._conn, self.refuses = frozenset(trains), conn, refuses
        self.full, self.wait, self.tells = False, timedelta(seconds=0.3), False
        self.taken, self.seen, self.at_once, self.most_at_once = [], [], 0, 0
        self._lock = asyncio.Lock()

    async def submit(self, submission) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            async with self._lock:
                row = await self._conn.fetchrow(
                    "SELECT state, submitter, server_id, claim_token FROM interlock.execution WHERE id = $1",
                    submission.execution_id,
                )
            self.seen.append(dict(row))
            if self.full:
                raise NoRoom(self.wait, or_notice=self.tells)
            if self.refuses > 0:
                self.refuses -= 1
                raise ConnectionError("nobody at home")
            self.taken.append(submission)
        finally:
            self.at_once -= 1

    async def aclose(self) -> None:
        pass


@pytest.fixture(autouse=True)
def nothing_stays_armed():
    yield
    failpoints.disarm()


def dispatcher(ramp, remote, **settings):
    return ramp.dispatcher(
        remote=[Route(remote, remote.trains)], server=lambda: SERVER, hands=Hands(["work", "far"]), **settings
    )


async def execution(ramp, entry_id: int):
    return await ramp.conn.fetchrow(
        "SELECT * FROM interlock.execution WHERE entry_id = $1 ORDER BY id DESC LIMIT 1", entry_id
    )


def pause_of(one) -> float:
    return one._remote[0]._pauses.for_all().total_seconds()


def end_pause(one) -> None:
    """As if the time had passed for which a submitter is to be left alone."""
    pauses = one._remote[0]._pauses
    pauses._again_at, pauses._room = 0.0, pauses._room._replace(at=0.0)


async def make_due(ramp) -> None:
    await ramp.conn.execute("UPDATE interlock.work_queue SET scheduled_at = now() WHERE state = 'queued'")


async def test_a_routed_train_is_submitted_after_the_commit_under_this_servers_lease(ramp):
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word
    remote = Remote(ramp.conn)
    cycle = await dispatcher(ramp, remote).tick()
    [submission] = remote.taken
    assert (cycle.submitted, submission.entry_id, submission.train, submission.input) == (1, id, "far", "{}")
    [seen] = remote.seen
    assert (seen["state"], seen["submitter"], seen["server_id"]) == ("pending", "remote", SERVER)
    assert seen["claim_token"] is not None
    row = await execution(ramp, id)
    assert (row["state"], row["server_id"], row["claim_token"]) == ("pending", None, None)
    assert await ramp.conn.fetchval("SELECT count(*) FROM interlock.background_job") == 0


async def test_other_trains_go_to_the_worker(ramp):
    [here], [far] = await ramp.queue(), await ramp.queue(train="far")
    remote = Remote(ramp.conn)
    cycle = await dispatcher(ramp, remote).tick()
    assert [one.entry_id for one in cycle.dispatched] == [here]
    assert [one.entry_id for one in remote.taken] == [far]


@pytest.mark.parametrize("most", [1, 4])
async def test_no_more_are_claimed_than_can_be_submitted_at_once(ramp, most):
    await ramp.queue(9, train="far")
    remote = Remote(ramp.conn)
    claimed = []

    async def look() -> None:
        async with remote._lock:
            claimed.append(
                await ramp.conn.fetchval("SELECT count(*) FROM interlock.execution WHERE claim_token IS NOT NULL")
            )

    failpoints.arm("dispatch.before_submit", look)
    cycle = await dispatcher(ramp, remote, max_concurrent_dispatch=most).tick()
    assert (cycle.submitted, remote.most_at_once) == (9, most)
    assert max(claimed) <= most


async def test_a_cycle_submits_no_more_than_its_limit(ramp):
    await ramp.queue(9, train="far")
    assert (await dispatcher(ramp, Remote(ramp.conn), max_queued_jobs_per_cycle=4).tick()).submitted == 4


async def test_a_failed_submit_closes_the_execution_and_queues_the_entry_again(ramp):
    [id] = await ramp.queue(train="far", priority=9)  # noqa: A001  the row's own word
    before = await ramp.entry(id)
    remote = Remote(ramp.conn, refuses=1)
    one = dispatcher(ramp, remote)
    assert (await one.tick()).failed_submits == 1
    row, entry = await execution(ramp, id), await ramp.entry(id)
    assert (row["state"], row["failure"], row["error_type"]) == ("failed", "submit_failed", "ConnectionError")
    assert (entry["state"], entry["submits"], entry["attempt"]) == ("queued", 1, before["attempt"])
    assert (entry["created_at"], entry["priority"]) == (before["created_at"], before["priority"])
    assert entry["previous_execution_id"] == row["id"]
    [told] = ramp.told(SubmitFailed)
    assert not told.final
    await make_due(ramp)
    end_pause(one)
    assert (await one.tick()).submitted == 1


@pytest.mark.parametrize(("attempts", "submits"), [(3, 3), (1, 1), (0, 1)])
async def test_after_the_last_failed_submit_the_work_is_left_to_a_person(ramp, attempts, submits):
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word
    remote = Remote(ramp.conn, refuses=99)
    one = dispatcher(ramp, remote, max_dispatch_attempts=attempts)
    for _ in range(submits):
        assert (await one.tick()).failed_submits == 1
        await make_due(ramp)
        end_pause(one)
    assert (await one.tick()).failed_submits == 0
    dead = await ramp.conn.fetchrow("SELECT * FROM interlock.dead_letter")
    assert (dead["reason"], dead["first_entry_id"], dead["state"]) == ("submit_failed", id, "awaiting_intervention")
    assert [event.final for event in ramp.told(SubmitFailed)] == [False] * (submits - 1) + [True]


async def test_the_pause_of_a_runner_that_is_away_for_hours_stays_at_a_minute(ramp):
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word
    await ramp.conn.execute("UPDATE interlock.work_queue SET submits = 998 WHERE id = $1", id)
    one = dispatcher(ramp, Remote(ramp.conn, refuses=99), max_dispatch_attempts=1000)
    assert (await one.tick()).failed_submits == 1
    entry, row = await ramp.entry(id), await execution(ramp, id)
    assert (entry["submits"], entry["scheduled_at"] - row["ended_at"]) == (999, timedelta(seconds=60))


async def test_a_submit_that_fails_after_another_has_recovered_the_work_changes_nothing(ramp):
    """This server was taken for lost while it submitted: the execution belongs to recovery by then."""
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word

    class Slow(Remote):
        async def submit(self, submission) -> None:
            await ramp.conn.execute(
                "UPDATE interlock.execution SET state = 'failed', failure = 'worker_lost', ended_at = now()"
                " WHERE id = $1",
                submission.execution_id,
            )
            raise ConnectionError("too late")

    await dispatcher(ramp, Slow(ramp.conn)).tick()
    assert (await execution(ramp, id))["failure"] == "worker_lost"
    assert (await ramp.entry(id))["state"] == "dispatched"


async def test_where_there_is_no_room_the_claim_is_undone_and_no_attempt_is_used(ramp):
    ids = await ramp.queue(9, train="far")
    before = [dict(await ramp.entry(id)) for id in ids]  # noqa: A001  the row's own word
    remote = Remote(ramp.conn)
    remote.full = True
    one = dispatcher(ramp, remote, max_concurrent_dispatch=3, max_dispatch_attempts=1)
    for _ in range(3):
        cycle = await one.tick()
        assert (cycle.submitted, cycle.failed_submits) == (0, 0)
        end_pause(one)
    assert len(remote.seen) == 9, "a cycle ends where there is no room"
    assert [dict(await ramp.entry(id)) for id in ids] == before  # noqa: A001  as above
    assert await ramp.conn.fetchval("SELECT count(*) FROM interlock.execution") == 0
    remote.full = False
    assert (await one.tick()).submitted == 9


async def test_where_there_is_no_room_it_asks_again_when_it_was_told_to(ramp):
    await ramp.queue(train="far")
    remote = Remote(ramp.conn)
    remote.full, remote.wait = True, timedelta(minutes=1)
    one = dispatcher(ramp, remote, job_dispatcher_polling_interval=timedelta(minutes=5))
    assert timedelta(seconds=10) < (await one.tick()).sleep <= timedelta(minutes=1)
    remote.full = False
    assert (await one.tick()).submitted == 0
    end_pause(one)
    assert (await one.tick()).submitted == 1


async def test_who_has_no_room_and_says_to_ask_at_once_is_not_asked_without_end(ramp, monkeypatch):
    monkeypatch.setattr(pause, "SHORTEST", pause.SHORTEST * 1000)  # longer than two ticks, on whatever machine
    await ramp.queue(train="far")
    remote = Remote(ramp.conn)
    remote.full, remote.wait = True, timedelta(0)
    one = dispatcher(ramp, remote)
    assert (await one.tick()).sleep > timedelta(0)
    assert pause_of(one) > 0
    await one.tick()
    assert len(remote.seen) == 1


@pytest.mark.parametrize("tells", [True, False])
async def test_a_notice_of_room_ends_the_wait_only_of_those_who_say_so(ramp, tells):
    await ramp.queue(train="far")
    remote = Remote(ramp.conn)
    remote.full, remote.wait, remote.tells = True, timedelta(minutes=5), tells
    one = dispatcher(ramp, remote)
    await one.tick()
    assert pause_of(one) > 200
    assert one.freed_elsewhere() is tells
    assert (pause_of(one) < 1) is tells
    assert not one.freed_elsewhere(), "it was told already"
    await asyncio.sleep(0.02)
    await one.tick()
    assert len(remote.seen) == (2 if tells else 1)


async def test_a_notice_of_room_does_not_end_the_pause_after_a_failure(ramp):
    await ramp.queue(train="far")
    one = dispatcher(ramp, Remote(ramp.conn, refuses=9))
    await one.tick()
    assert not one.freed_elsewhere()
    assert pause_of(one) > 0


class Picky(Remote):
    """Has no room for one of its trains."""

    picks = "narrow"

    def __init__(self, conn) -> None:
        super().__init__(conn, trains=("far", "narrow"))

    async def submit(self, submission) -> None:
        await super().submit(submission)
        if submission.train == self.picks:
            self.taken.remove(submission)
            raise NoRoom(timedelta(minutes=5), or_notice=self.tells, train_only=True)


@pytest.mark.parametrize("most", [1, 4])
async def test_what_one_train_has_to_wait_for_keeps_no_other_from_its_turn(ramp, most):
    narrow, far = await ramp.queue(9, train="narrow", priority=9), await ramp.queue(3, train="far")
    remote = Picky(ramp.conn)
    one = dispatcher(ramp, remote, max_concurrent_dispatch=most, max_dispatch_attempts=1)
    assert (await one.tick()).submitted == 3
    assert [each.entry_id for each in remote.taken] == far
    assert len(remote.seen) == most + 3, "a train that has to wait is not tried with each of its entries"
    states = await ramp.states()
    assert {states[id] for id in narrow} == {"queued"}  # noqa: A001  the row's own word
    assert await ramp.conn.fetchval("SELECT sum(submits) FROM interlock.work_queue") == 0


@pytest.mark.parametrize("tells", [True, False])
async def test_a_train_that_has_to_wait_is_tried_again_in_time_or_when_it_is_told(ramp, tells):
    await ramp.queue(train="narrow")
    remote = Picky(ramp.conn)
    remote.tells = tells
    one = dispatcher(ramp, remote, job_dispatcher_polling_interval=timedelta(hours=1))
    assert timedelta(minutes=4) < (await one.tick()).sleep <= timedelta(minutes=5)
    remote.picks = "none"
    assert (await one.tick()).submitted == 0
    assert one.freed_elsewhere() is tells
    await asyncio.sleep(0.02)
    assert (await one.tick()).submitted == tells


async def test_a_dispatcher_that_is_told_to_stop_claims_nothing_more(ramp):
    """However much waits, and however fast it is taken."""
    await ramp.queue(50, train="far")
    remote = Remote(ramp.conn)
    one = dispatcher(ramp, remote, max_queued_jobs_per_cycle=None)
    component = DispatchComponent(one, emit=ramp.events.append, notify=lambda _: None)

    async def stop() -> None:
        if len(remote.taken) == 3:
            component.stop()

    failpoints.arm("dispatch.before_submit", stop)
    await asyncio.wait_for(component.run(), 60)
    assert len(remote.taken) == 4, "what is claimed is submitted"
    assert await ramp.conn.fetchval("SELECT count(*) FROM interlock.work_queue WHERE state = 'queued'") == 46


@pytest.mark.parametrize("most", [1, 5])
async def test_an_entry_that_cannot_be_claimed_fails_alone_with_its_reason(ramp, most):
    [bad], after = await ramp.queue(train="poison"), await ramp.queue(2, train="far")
    await ramp.conn.execute("ALTER TABLE interlock.execution ADD CONSTRAINT no_poison CHECK (train <> 'poison')")
    remote = Remote(ramp.conn, trains=("far", "poison"))
    one = dispatcher(ramp, remote, max_concurrent_dispatch=most)
    assert (await one.tick()).sleep < timedelta(seconds=0.1)
    await one.tick()
    assert [each.entry_id for each in remote.taken] == after
    entry = await ramp.entry(bad)
    assert (entry["state"], "no_poison" in entry["failure"]) == ("failed", True)
    assert [told.entry_id for told in ramp.told(EntryRefused)] == [bad]


async def test_what_ends_elsewhere_wakes_a_dispatcher_that_counts_caps(ramp):
    await ramp.group("default", cap=1)
    one = ramp.dispatcher()
    await one.tick()
    assert one.freed_elsewhere()


@pytest.mark.parametrize("attempts", [1, 3])
async def test_a_failed_submit_tells_those_who_wait_for_its_place_under_a_cap(ramp, attempts):
    await ramp.group("default", cap=1)
    await ramp.queue(train="far")
    one, notices = dispatcher(ramp, Remote(ramp.conn, refuses=1), max_dispatch_attempts=attempts), []
    component = DispatchComponent(one, emit=ramp.events.append, notify=notices.append)
    running = asyncio.create_task(component.run())
    await eventually(lambda: bool(notices), 60, "the notice")
    component.stop()
    await running
    assert (notices, len(ramp.told(SubmitFailed))) == (["work:"], 1)


async def test_what_was_cancelled_while_there_was_no_room_stays_cancelled(ramp):
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word

    class Cancelling(Remote):
        async def submit(self, submission) -> None:
            await ramp.conn.execute(
                "UPDATE interlock.execution SET state = 'cancelled', ended_at = now() WHERE id = $1",
                submission.execution_id,
            )
            raise NoRoom(timedelta(0))

    await dispatcher(ramp, Cancelling(ramp.conn)).tick()
    assert (await execution(ramp, id))["state"] == "cancelled"
    assert (await ramp.entry(id))["state"] == "dispatched"


async def test_a_failed_submit_ends_the_cycle_so_that_an_outage_does_not_use_up_the_attempts_of_a_whole_queue(ramp):
    await ramp.queue(9, train="far")
    one = dispatcher(ramp, Remote(ramp.conn, refuses=99))
    assert (await one.tick()).failed_submits == 1
    assert await ramp.conn.fetchval("SELECT count(*) FROM interlock.work_queue WHERE submits > 0") == 1


async def test_no_notice_ends_the_pause_after_a_failed_submit(ramp):
    """While a runner is away each notice of new work would use up an attempt of the next in the queue."""
    remote = Remote(ramp.conn, refuses=99)
    one = dispatcher(ramp, remote, job_dispatcher_polling_interval=timedelta(minutes=5))

    async def tick() -> timedelta:
        return (await one.tick()).sleep

    loop = Loop("submit", tick, emit=[].append)
    running = asyncio.create_task(loop.run())
    for _ in range(20):
        await ramp.queue(train="far")
        before = loop.ticks
        loop.wake()
        await eventually(lambda before=before: loop.ticks > before)
    assert await ramp.conn.fetchval("SELECT sum(submits) FROM interlock.work_queue") == 1
    loop.stop()
    await running


async def test_the_pause_grows_with_failures_in_a_row_and_ends_with_the_first_that_is_taken(ramp, monkeypatch):
    for name in ("FIRST", "LONGEST"):
        monkeypatch.setattr(pause, name, getattr(pause, name) * 100)  # the time that a tick takes does not count
    await ramp.queue(9, train="far")
    remote = Remote(ramp.conn, refuses=5)
    one = dispatcher(ramp, remote, job_dispatcher_polling_interval=timedelta(minutes=5))
    pauses = []
    for _ in range(5):
        assert (await one.tick()).failed_submits == 1
        pauses.append(round(pause_of(one), -2))
        assert (await one.tick()).failed_submits == 0
        end_pause(one)
    assert pauses == [200, 400, 800, 1000, 1000]
    remote.refuses = 0
    assert (await one.tick()).submitted > 0
    await ramp.queue(train="far")
    remote.refuses = 1
    assert (await one.tick()).failed_submits == 1
    assert round(pause_of(one), -2) == 200


async def test_a_submit_whose_end_could_not_be_written_is_put_back_by_the_next_cycle(ramp, monkeypatch):
    """Its server lives, so neither recovery nor a reaper would ever look at it."""
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word
    remote = Remote(ramp.conn, refuses=1)
    one = dispatcher(ramp, remote)
    broken = Dispatching.requeue_if_held

    async def away(*_, **__):
        raise ConnectionError("the database is away")

    monkeypatch.setattr(Dispatching, "requeue_if_held", away)
    with pytest.raises(ConnectionError):
        await one.tick()
    assert (await execution(ramp, id))["state"] == "pending"
    monkeypatch.setattr(Dispatching, "requeue_if_held", broken)
    assert (await one.tick()).submitted == 1
    assert [each.entry_id for each in remote.taken] == [id]


@pytest.fixture
async def claimed_late(ramp, monkeypatch):
    """The answer to the first claim is lost, and the first look for what it got comes before its commit."""
    claim, put_back, looks = RemoteDispatch._claim, Submitting.put_back_if_held, []

    async def claim_in_vain(self, token):
        monkeypatch.setattr(RemoteDispatch, "_claim", claim)
        await claim(self, token)
        raise ConnectionResetError("the connection ended")

    async def early(self, conn, token) -> int:
        looks.append(token)
        return 0 if len(looks) == 1 else await put_back(self, conn, token)

    monkeypatch.setattr(RemoteDispatch, "_claim", claim_in_vain)
    monkeypatch.setattr(Submitting, "put_back_if_held", early)
    monkeypatch.setattr(doubts, "EVERY", 0)
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word
    one = dispatcher(ramp, Remote(ramp.conn))
    with pytest.raises(ConnectionResetError):
        await one.tick()
    assert (await execution(ramp, id))["state"] == "pending"
    return id, one


async def test_what_was_claimed_after_the_first_look_is_put_back_by_a_later_one(ramp, claimed_late):
    id, one = claimed_late  # noqa: A001  the row's own word
    assert (await one.tick()).submitted == 0
    assert (await one.tick()).submitted == 1
    entry = await ramp.entry(id)
    assert (entry["attempt"], entry["submits"]) == (1, 0)


async def test_control_without_a_later_look_it_stays_with_a_server_that_knows_nothing_of_it(
    ramp, claimed_late, monkeypatch
):
    monkeypatch.setattr(doubts, "MOST", 0)
    id, one = claimed_late  # noqa: A001  the row's own word
    one._remote[0]._doubts = doubts.Doubts()
    assert [(await one.tick()).submitted for _ in range(5)] == [0] * 5
    assert (await execution(ramp, id))["state"] == "pending"


async def test_an_error_with_a_nul_byte_is_written_all_the_same(ramp):
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word

    class Odd(Remote):
        async def submit(self, _) -> None:
            raise ConnectionError("it said \0")

    await dispatcher(ramp, Odd(ramp.conn)).tick()
    assert (await execution(ramp, id))["error_message"] == "it said \\x00"


async def test_a_train_that_is_submitted_elsewhere_is_not_dispatched_here(ramp):
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word
    cycle = await ramp.dispatcher(elsewhere=["far"], hands=Hands(["work", "far"])).tick()
    assert (cycle.dispatched, (await ramp.entry(id))["state"]) == ((), "queued")


async def test_caps_hold_for_routed_trains(ramp):
    await ramp.group("default", cap=2)
    await ramp.queue(9, train="far")
    assert (await dispatcher(ramp, Remote(ramp.conn), max_concurrent_dispatch=5).tick()).submitted == 2


async def test_a_server_that_is_not_registered_submits_nothing(ramp):
    await ramp.queue(train="far")
    remote = Remote(ramp.conn)
    cycle = await ramp.dispatcher(remote=[Route(remote, remote.trains)], hands=Hands(["far"])).tick()
    assert (cycle.submitted, cycle.failed_submits, remote.taken) == (0, 0, [])


async def test_inline_work_has_run_when_the_tick_ends(ramp):
    [id] = await ramp.queue()  # noqa: A001  the row's own word
    ran = []

    async def run() -> None:
        ran.append(await ramp.conn.fetchval("SELECT entry_id FROM interlock.background_job"))

    ramp.local = InlineSubmitter(run)
    await ramp.dispatcher().tick()
    assert ran == [id]


async def test_the_local_worker_is_woken_and_others_only_when_there_is_more_than_it_can_take(ramp):
    woken, notices = [], []
    ramp.local = PostgresSubmitter(wake=lambda: woken.append(1), free_slots=lambda: 2, notify=notices.append)
    one = ramp.dispatcher(job_dispatcher_polling_interval=timedelta(seconds=1))
    await one.tick()
    assert (woken, notices) == ([], [])
    await ramp.queue(2)
    await one.tick()
    assert (len(woken), notices) == (1, [])
    await ramp.queue(3)
    await one.tick()
    assert (len(woken), notices) == (2, ["job:"])
