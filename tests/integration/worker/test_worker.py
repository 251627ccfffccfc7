"""One worker, real jobs: what it claims, how bodies end, and what harms nobody."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from datetime import timedelta
from typing import Any

import pytest

from interlock import Cancel, Retry, Snooze, current_execution, every
from interlock.errors import CancelledByRequest, NotInTrain
from interlock.model.failure import LONGEST_TRACEBACK
from interlock.observe.context import current
from interlock.observe.events import (
    ComponentFailed,
    ExecutionReleased,
    ExecutionSettled,
    ServerDraining,
    SettleRefused,
    WorkClaimed,
)
from interlock.observe.logs import ExecutionFields
from interlock.worker.settle import Settler
from tests.harness.waiting import eventually


async def test_an_async_function_runs_and_its_output_is_stored(works, yard):
    @works.app.train
    async def work(name: str, times: int = 2) -> str:
        return name * times

    execution = await yard.dispatch(input={"name": "a"})
    await works.start()
    row = await works.ended(execution)
    assert (row["state"], row["output"]) == ("completed", '"aa"')


async def test_a_plain_function_runs_in_a_thread_of_the_worker(works, yard):
    @works.app.train
    def work() -> str:
        return threading.current_thread().name

    execution = await yard.dispatch()
    await works.start()
    assert "interlock-worker" in (await works.ended(execution))["output"]


async def test_a_train_knows_its_own_execution(works, yard):
    seen = {}

    @works.app.train
    async def work() -> None:
        me = current_execution()
        seen.update(id=me.id, attempt=me.attempt, manifest=me.manifest, fire=me.fire_time, deadline=me.deadline)
        seen.update(cancelled=me.cancelled, train=me.train)

    manifest = await yard.manifest("nightly")
    fire = "2026-01-02T03:00:00.000000+00:00"
    execution = await yard.dispatch(kind="scheduled", manifest=manifest, fire_key=fire, attempt=2, limit=60)
    await works.start()
    row = await works.ended(execution)
    assert seen["fire"].isoformat(timespec="microseconds") == fire
    assert seen["deadline"] == row["started_at"] + timedelta(seconds=60)
    facts = {"id": execution, "attempt": 2, "manifest": "nightly", "cancelled": False, "train": "work"}
    assert facts.items() <= seen.items()


def test_outside_of_a_train_there_is_no_current_execution():
    with pytest.raises(NotInTrain, match="current_execution"):
        current_execution()


async def test_the_trains_own_log_lines_name_the_execution_also_from_a_thread(works, yard, caplog):
    caplog.handler.addFilter(ExecutionFields())

    @works.app.train
    def work() -> None:
        logging.getLogger("mine").warning("here")
        current_execution().logger.warning("and here")

    execution = await yard.dispatch()
    await works.start()
    await works.ended(execution)
    records = [record for record in caplog.records if "here" in record.getMessage()]
    assert [(record.execution_id, record.train, record.attempt) for record in records] == [(execution, "work", 1)] * 2


async def test_what_is_said_while_outcomes_are_written_does_not_name_the_job_that_ended_first(works, yard):
    @works.app.train
    async def work(n: int) -> int:
        return n // (n - 1)

    named: list[Any] = []
    works.app.events.subscribe(lambda event: named.append(current()) if isinstance(event, ExecutionSettled) else None)
    runs = [await yard.dispatch(input={"n": n}) for n in (0, 1, 2)]
    await works.start()
    for run in runs:
        await works.ended(run)
    await eventually(lambda: len(named) == len(runs), 60, "the news of all ends")
    assert named == [None] * len(runs)


@pytest.mark.parametrize("raised", [True, False])
@pytest.mark.parametrize(
    ("outcome", "state", "attempt"),
    [
        (Retry(timedelta(seconds=40)), "failed", 2),
        (Snooze(timedelta(seconds=40)), "snoozed", 1),
        (Cancel("enough"), "cancelled", None),
    ],
    ids=["retry", "snooze", "cancel"],
)
async def test_a_train_chooses_its_outcome_by_raising_or_returning_it(works, yard, outcome, state, attempt, raised):
    @works.app.train
    async def work() -> int | Retry | Snooze | Cancel:
        if raised:
            raise outcome
        return outcome

    execution = await yard.dispatch()
    await works.start()
    assert (await works.ended(execution))["state"] == state
    assert [entry["attempt"] for entry in await yard.queued()] == ([attempt] if attempt else [])


async def test_a_junction_may_choose_the_outcome_of_its_chain(works, yard):
    async def first(n: int) -> int:
        raise Snooze(timedelta(seconds=5))

    def second(n: int) -> int:
        return n

    works.app.chain("work", first, second)
    execution = await yard.dispatch(input={"n": 1})
    await works.start()
    assert (await works.ended(execution))["state"] == "snoozed"


async def test_a_chain_records_its_progress_and_names_the_junction_that_failed(works, yard):
    async def fetch(n: int) -> int:
        return n

    def write(n: int) -> int:
        raise KeyError(n)

    works.app.chain("work", fetch, write)
    execution = await yard.dispatch(input={"n": 1})
    await works.start()
    row = await works.ended(execution)
    assert (row["failure"], row["error_type"], row["junction"]) == ("error", "KeyError", "write")
    assert (row["junction_index"], row["junction_total"]) == (1, 2)


def too_deep() -> None:
    too_deep()


def huge() -> None:
    raise ValueError("x" * 10_000_000)


def unprintable() -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    raise Unprintable


def unprintable_and_gone() -> None:
    class Deadly(Exception):
        def __str__(self) -> str:
            raise SystemExit

    raise Deadly


def nul() -> None:
    raise ValueError("a\0b \ud800")


def out_of_memory() -> None:
    raise MemoryError


def interrupted() -> None:
    raise KeyboardInterrupt


def generator_ended() -> None:
    raise StopIteration


@pytest.mark.parametrize("in_thread", [True, False])
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (sys.exit, "SystemExit"),
        (out_of_memory, "MemoryError"),
        (interrupted, "KeyboardInterrupt"),
        (too_deep, "RecursionError"),
        (generator_ended, "RuntimeError"),
        (huge, "ValueError"),
        (nul, "ValueError"),
        (unprintable, "Unprintable"),
        (unprintable_and_gone, "Deadly"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_whatever_a_body_raises_is_named_and_harms_no_one(works, yard, body, kind, in_thread):
    if in_thread:

        @works.app.train(name="work")
        def plain() -> None:
            body()

    else:

        @works.app.train(name="work")
        async def coroutine() -> None:
            body()

    @works.app.train
    async def fine() -> int:
        return 1

    execution, other = await yard.dispatch(), await yard.dispatch("fine")
    await works.start()
    row = await works.ended(execution)
    assert (row["failure"], row["error_type"].rpartition(".")[2]) == ("error", kind)
    assert len(row["traceback"]) < LONGEST_TRACEBACK + 100
    assert (await works.ended(other))["state"] == "completed"
    last = await yard.dispatch("fine")
    assert (await works.ended(last))["state"] == "completed"


@pytest.mark.parametrize("output", ["a\0b", object(), "x" * 2000, float("nan")], ids=["nul", "object", "large", "nan"])
async def test_an_output_that_cannot_be_stored_fails_its_own_run_with_the_reason(works, yard, output):
    app = works.new_app(max_output_bytes=1000)

    @app.train
    async def work() -> Any:
        return output

    @app.train
    async def fine() -> int:
        return 1

    execution, other = await yard.dispatch(attempt=3), await yard.dispatch("fine")
    await works.start(app)
    row = await works.ended(execution)
    assert (row["state"], row["failure"]) == ("failed", "invalid_output")
    assert row["error_message"]
    assert (await works.ended(other))["state"] == "completed"


async def test_an_outcome_that_breaks_its_batch_is_settled_alone(works, yard, monkeypatch):
    """The guard of the outputs is switched off: PostgreSQL itself refuses the NUL, for the whole batch."""
    monkeypatch.setattr("interlock.worker.run.encoded", lambda _, output: output)

    @works.app.train
    async def work(n: int) -> str:
        return b'"\\u0000"' if n == 3 else b"1"

    runs = [await yard.dispatch(input={"n": n}) for n in range(6)]
    await works.start()
    states = [(await works.ended(run))["state"] for run in runs]
    assert states == ["completed", "completed", "completed", "failed", "completed", "completed"]
    assert "could not be stored" in (await yard.execution(runs[3]))["error_message"]


@pytest.mark.parametrize("keyed", [False, True], ids=["plain", "others"])
async def test_large_outputs_make_small_batches(works, yard, monkeypatch, keyed):
    """However many wait, no statement carries more than one can be written in its time."""
    monkeypatch.setattr("interlock.worker.settle.LARGEST_TEXT", 2500)
    batches, write = [], getattr(Settler, name := "_write_others" if keyed else "_write_plain")

    async def counted(self, batch, unsure) -> None:
        batches.append(len(batch))
        await write(self, batch, unsure)

    monkeypatch.setattr(Settler, name, counted)

    @works.app.train
    async def work() -> str:
        return "x" * 1000

    runs = [await yard.dispatch(key=f"{n}" if keyed else None) for n in range(8)]
    await works.start()
    assert {(await works.ended(run))["state"] for run in runs} == {"completed"}
    assert sum(batches) == 8
    assert max(batches) <= 3


@pytest.mark.parametrize("said", ["before", "after"])
async def test_a_renamed_train_that_does_not_count_in_the_cap_does_so_under_neither_name(works, yard, said):
    @works.app.train(name="before")
    async def queued() -> None: ...

    app = works.new_app(max_active_jobs=1, exclude_from_max_active_jobs=(said,))

    @app.train(name="after", aliases=["before"])
    async def renamed() -> None: ...

    await yard.dispatch("elsewhere")
    async with works.app:
        handles = [await queued.aenqueue(), await renamed.aenqueue()]
        await works.start(app)
        assert [await handle.aresult(20) for handle in handles] == [None, None]
    tags = await yard.conn.fetchval("SELECT tags FROM interlock.server WHERE state = 'alive'")
    assert {"uncounted:before", "uncounted:after"} <= set(tags)


NO_MORE_THAN_THREE = """
CREATE FUNCTION interlock.refuse_many() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) > 3 FROM changed WHERE ended_at IS NOT NULL) THEN
        RAISE EXCEPTION USING ERRCODE = 'query_canceled', MESSAGE = 'canceling statement due to statement timeout';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER refuse_many AFTER UPDATE ON interlock.execution REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION interlock.refuse_many();
"""


@pytest.mark.parametrize("keyed", [False, True], ids=["plain", "others"])
async def test_what_takes_too_long_to_be_written_together_is_written_in_parts(works, yard, keyed):
    """As under a `statement_timeout` of the role, or in a database that has too much to do: each try ends the same."""
    await yard.conn.execute(NO_MORE_THAN_THREE)
    app = works.new_app(settle_window=timedelta(seconds=0.1))

    @app.train
    async def work() -> None: ...

    runs = [await yard.dispatch(key=f"{n}" if keyed else None) for n in range(10)]
    await works.start(app)
    assert {(await works.ended(run, 20))["state"] for run in runs} == {"completed"}
    await eventually(lambda: len(works.told(ExecutionSettled)) == 10, 60, "ten settled jobs")
    assert works.told(SettleRefused) == []


async def test_control_a_batch_that_is_given_up_as_a_whole_harms_all_its_members(works, yard, monkeypatch):
    monkeypatch.setattr("interlock.worker.run.encoded", lambda _, output: output)

    async def give_up(self, settlement, **_) -> None:
        return

    monkeypatch.setattr("interlock.worker.settle.Settler._write_alone", give_up)

    @works.app.train
    async def work(n: int) -> str:
        return b'"\\u0000"' if n == 3 else b"1"

    runs = [await yard.dispatch(input={"n": n}) for n in range(6)]
    await works.start()
    await eventually(lambda: works.told(WorkClaimed)[5:], 60, "the claims")
    later = await yard.dispatch(input={"n": 7})
    assert (await works.ended(later))["state"] == "completed"
    assert {(await yard.execution(run))["state"] for run in runs} == {"in_progress"}


async def test_an_input_that_this_version_cannot_read_fails_alone_with_a_clear_reason(works, yard):
    @works.app.train
    async def work(n: int) -> int:
        return n

    wrong, right = await yard.dispatch(input={"m": 1}), await yard.dispatch(input={"n": 1})
    await works.start()
    row = await works.ended(wrong)
    assert row["failure"] == "invalid_input"
    assert "'m'" in row["error_message"]
    assert (await works.ended(right))["state"] == "completed"


async def test_a_body_past_its_timeout_is_cancelled_at_once_and_tried_again(works, yard):
    @works.app.train
    async def work() -> None:
        await asyncio.sleep(600)

    execution = await yard.dispatch(limit=0.2)
    await works.start()
    row = await works.ended(execution)
    assert (row["state"], row["failure"]) == ("failed", "timeout")
    assert row["ended_at"] - row["started_at"] < timedelta(seconds=30)
    assert [entry["attempt"] for entry in await yard.queued()] == [2]


async def test_a_thread_past_its_timeout_ends_at_its_next_check(works, yard):
    @works.app.train
    def work() -> None:
        while not current_execution().cancelled:
            time.sleep(0.005)

    execution = await yard.dispatch(limit=0.2)
    await works.start()
    assert (await works.ended(execution))["failure"] == "timeout"


async def test_a_cancel_ends_an_async_body_and_is_not_tried_again(works, yard):
    met = []

    @works.app.train
    async def work() -> None:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError as request:
            met.append(request)
            raise

    execution = await yard.dispatch()
    await works.start()
    await works.reaches(execution, "in_progress")
    cancelled = await works.app.acancel_execution(execution, actor="ada")
    assert cancelled.asked == [execution]
    row = await works.ended(execution)
    assert row["ended_at"] - row["cancel_requested_at"] < timedelta(seconds=10)
    assert (row["state"], row["cancel_cause"], row["cancel_actor"]) == ("cancelled", "person", "ada")
    assert len(met) == 1
    assert await yard.queued() == []


async def test_a_cancel_reaches_a_thread_at_its_next_check(works, yard):
    raised = []

    @works.app.train
    def work() -> None:
        while True:
            try:
                current_execution().ensure()
            except CancelledByRequest as request:
                raised.append(request)
                raise
            time.sleep(0.005)

    execution = await yard.dispatch()
    await works.start()
    await works.reaches(execution, "in_progress")
    await works.app.acancel_execution(execution)
    assert (await works.ended(execution))["state"] == "cancelled"
    assert raised


async def test_a_cancel_ends_a_chain_at_its_next_junction(works, yard):
    began, go_on = threading.Event(), threading.Event()
    reached = []

    def first(n: int) -> int:
        began.set()
        go_on.wait(60)
        return n

    async def second(n: int) -> int:
        reached.append(n)
        return n

    works.app.chain("work", first, second)
    execution = await yard.dispatch(input={"n": 1})
    await works.start()
    await eventually(began.is_set)
    await works.app.acancel_execution(execution)
    go_on.set()
    assert (await works.ended(execution))["state"] == "cancelled"
    assert reached == []


async def test_a_train_never_runs_beyond_its_own_concurrency(works, yard):
    running, most = [], []

    @works.app.train(concurrency=2)
    async def work() -> None:
        running.append(1)
        most.append(len(running))
        await asyncio.sleep(0.02)
        running.pop()

    runs = [await yard.dispatch() for _ in range(8)]
    await works.start()
    for run in runs:
        await works.ended(run)
    assert max(most) == 2


async def test_a_tagged_train_runs_only_where_the_worker_has_the_tag(works, yard):
    plain, tagged = works.new_app(), works.new_app(worker_tags=("gpu",))
    for app in (plain, tagged):

        @app.train(tags=["gpu"])
        async def work() -> None:
            return

        @app.train
        async def other() -> None:
            return

    execution, free = await yard.dispatch(), await yard.dispatch("other")
    await works.start(plain)
    await works.ended(free)
    assert (await yard.execution(execution))["state"] == "pending"
    await works.start(tagged)
    assert (await works.ended(execution))["state"] == "completed"


async def test_jobs_are_claimed_in_the_order_of_their_priority(works, yard):
    app, order = works.new_app(worker_slots=1), []

    @app.train
    async def work(n: int) -> None:
        order.append(n)

    runs = [await yard.dispatch(input={"n": n}, priority=n % 3) for n in range(9)]
    await works.start(app)
    for run in runs:
        await works.ended(run)
    assert order == [2, 5, 8, 1, 4, 7, 0, 3, 6]


async def test_a_shutdown_waits_for_what_runs_and_settles_it(works, yard):
    @works.app.train
    async def work() -> int:
        await asyncio.sleep(0.3)
        return 1

    execution = await yard.dispatch()
    async with works.app.running(["worker"]):
        await works.reaches(execution, "in_progress")
    assert (await yard.execution(execution))["state"] == "completed"


async def test_a_server_that_stops_takes_nothing_new_while_it_waits_for_what_is_stopped_first(works, yard):
    app, ticking, over = works.new_app(shutdown_timeout=timedelta(minutes=1)), asyncio.Event(), asyncio.Event()

    @app.timer(every(seconds=0.1))
    async def long_tick() -> None:
        ticking.set()
        await over.wait()

    @app.train
    async def work() -> None: ...

    async def stop_in_the_middle() -> None:
        async with app.running(["worker", "timers"]):
            await (await work.aenqueue()).aresult(60)
            await asyncio.wait_for(ticking.wait(), 60)

    stopping = asyncio.create_task(stop_in_the_middle())
    await eventually(lambda: works.told(ServerDraining), 60)
    await app.aenqueue_many([work.bind()])
    beats = "SELECT max(renewed_at) - $1 > interval '1 s' FROM interlock.server"
    now = await yard.conn.fetchval("SELECT clock_timestamp()")
    await eventually(lambda: yard.conn.fetchval(beats, now), 60)
    assert [row["state"] for row in await yard.conn.fetch("SELECT state FROM interlock.server")] == ["draining"]
    over.set()
    await stopping
    assert len(await yard.queued()) == 1


async def test_a_shutdown_that_takes_too_long_hands_the_job_back_with_the_same_attempt(works, yard):
    app = works.new_app(shutdown_timeout=timedelta(seconds=0.2))

    @app.train
    async def work() -> None:
        await asyncio.sleep(60)

    execution = await yard.dispatch(attempt=2)
    async with app.running(["worker"]):
        await works.reaches(execution, "in_progress")
    row = await yard.execution(execution)
    assert (row["state"], row["attempt"], row["server_id"], row["claim_token"]) == ("pending", 2, None, None)
    assert await yard.conn.fetchval("SELECT execution_id FROM interlock.background_job") == execution
    assert [event.execution_id for event in works.told(ExecutionReleased)] == [execution]


async def test_a_thread_that_ignores_its_cancellation_is_handed_back_and_settles_nothing(works, yard):
    app, go_on = works.new_app(shutdown_timeout=timedelta(seconds=0.1)), threading.Event()

    @app.train
    def work() -> None:
        go_on.wait(60)

    execution = await yard.dispatch()
    async with app.running(["worker"]):
        await works.reaches(execution, "in_progress")
    assert (await yard.execution(execution))["state"] == "pending"
    go_on.set()


@pytest.mark.parametrize("said_by", ["its own clock", "the manager"])
async def test_a_thread_past_its_timeout_whose_server_stops_has_timed_out_and_is_tried_again(works, yard, said_by):
    app = works.new_app(shutdown_timeout=timedelta(seconds=0.1))
    began, go_on = threading.Event(), threading.Event()

    @app.train
    def work() -> None:
        began.set()
        go_on.wait(60)

    execution = await yard.dispatch(limit=0.05 if said_by == "its own clock" else 600)
    async with app.running(["worker"]):
        await eventually(began.is_set, 60, "the body")
        if said_by == "the manager":
            await request_stop(yard, "timeout")
        else:
            await asyncio.sleep(0.1)  # its whole time
    row = await yard.execution(execution)
    assert (row["state"], row["failure"]) == ("failed", "timeout")
    assert [entry["attempt"] for entry in await yard.queued()] == [2]
    assert [event.outcome for event in works.told(ExecutionSettled)] == ["failed"]
    go_on.set()


async def request_stop(yard, cause: str) -> None:
    """As the manager and an operator write it, without telling the holder."""
    await yard.conn.execute(
        "UPDATE interlock.execution SET cancel_requested_at = clock_timestamp(), cancel_cause = $1", cause
    )


async def test_a_thread_that_somebody_cancelled_is_not_handed_on_when_its_server_stops(works, yard):
    app, go_on = works.new_app(shutdown_timeout=timedelta(seconds=0.1)), threading.Event()

    @app.train
    def work() -> None:
        go_on.wait(60)

    execution = await yard.dispatch()
    async with app.running(["worker"]):
        await works.reaches(execution, "in_progress")
        await request_stop(yard, "person")
    assert (await yard.execution(execution))["state"] == "cancelled"
    assert await yard.queued() == []
    go_on.set()


async def test_a_server_that_stops_while_the_database_is_away_ends_in_time_and_without_an_error(
    works, yard, migrated, proxy_to
):
    works.dsn = (proxy := proxy_to(migrated)).dsn(migrated)
    app = works.new_app(shutdown_timeout=timedelta(seconds=0.1))

    @app.train
    async def work() -> None:
        await asyncio.sleep(60)

    execution = await yard.dispatch()
    async with asyncio.timeout(60), app.running(["worker"]):
        await works.reaches(execution, "in_progress")
        proxy.cut()
    assert (await yard.execution(execution))["state"] == "in_progress"  # for recovery
    assert works.told(ComponentFailed) == []


async def test_a_settle_of_what_belongs_to_another_is_refused_and_said_so(works, yard):
    go_on = asyncio.Event()

    @works.app.train
    async def work() -> int:
        await go_on.wait()
        return 1

    execution = await yard.dispatch()
    await works.start()
    await works.reaches(execution, "in_progress")
    await yard.claimed(execution)
    go_on.set()
    await eventually(lambda: works.told(SettleRefused), 60, "the refusal")
    assert (await yard.execution(execution))["state"] == "in_progress"
    assert works.told(ExecutionSettled) == []


async def test_many_jobs_end_each_once(works, yard):
    seen = []

    @works.app.train
    async def work(n: int) -> int:
        seen.append(n)
        return n

    runs = [await yard.dispatch(input={"n": n}) for n in range(300)]
    await works.start()
    await eventually(lambda: len(works.told(ExecutionSettled)) == 300, 60, "300 settled jobs")
    assert sorted(seen) == list(range(300))
    assert set((await yard.states()).values()) == {"completed"}
    assert len(runs) == 300
