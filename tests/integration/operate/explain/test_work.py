"""Why an entry is not dispatched, and a dispatched execution does not run."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import uuid4

import asyncpg
import pytest

from interlock import Interlock
from interlock.operate.blockers import BLOCKERS, Code
from interlock.store.explaining import MOST
from tests.harness.waiting import eventually
from tests.integration.operate.explain.station import HOUR, START


def test_every_code_has_its_function_and_they_are_told_in_order():
    assert list(BLOCKERS) == list(Code)


async def test_a_delayed_entry_says_when_it_may_run(station):
    await station.server()
    await station.work.using(delay=HOUR).aenqueue()
    entry = await station.entry()
    why = await station.why(f"entry:{entry}")
    assert list(why) == ["SCHEDULED_LATER"]
    assert why["SCHEDULED_LATER"].details["at"] == START + HOUR
    assert why["SCHEDULED_LATER"].command == f"interlock queue cancel {entry}"


async def test_a_retry_that_waits_explains_the_execution_that_failed(station):
    await station.server()
    await station.fail.aenqueue()
    await station.ticks("dispatch", "worker")
    failed = await station.execution()
    why = await station.why(f"execution:{failed}")
    assert list(why) == ["RETRY_BACKOFF"]
    assert "attempt 2 of 2" in why["RETRY_BACKOFF"].evidence
    assert why["RETRY_BACKOFF"].command == f"interlock executions show {failed}"
    assert await station.codes(f"entry:{await station.entry()}") == ["RETRY_BACKOFF"]
    station.step.advance(2 * HOUR)
    await station.ticks("dispatch", "worker")
    assert await station.codes(f"execution:{failed}") == ["DEAD_LETTER_BLOCKS"]


async def test_a_full_group_names_who_holds_it(station):
    station.app.group("etl", max_active_jobs=1)
    await station.server()
    await station.work.using(group="etl").aenqueue(1)
    await station.ticks("dispatch")
    await station.work.using(group="etl").aenqueue(2)
    await station.ticks("dispatch")
    why = await station.why(f"entry:{await station.entry()}")
    assert list(why) == ["GROUP_AT_CAP", "BEHIND"]
    blocker, holder = why["GROUP_AT_CAP"], await station.execution()
    assert blocker.details == {"group": "etl", "cap": 1, "active": 1, "holders": [str(holder)]}
    assert f"execution {holder} (work on no server yet, not started)" in blocker.evidence
    assert blocker.command == "interlock groups set etl --cap 2"
    await station.ticks("worker")
    assert await station.codes(f"entry:{await station.entry()}") == []


async def test_the_global_cap_counts_only_what_it_covers(station):
    station.opened(max_active_jobs=1, exclude_from_max_active_jobs=("fail",))
    await station.server()
    await station.work.aenqueue()
    await station.ticks("dispatch")
    await station.work.aenqueue()
    why = await station.why(f"entry:{await station.entry()}")
    assert list(why) == ["GLOBAL_AT_CAP", "BEHIND"]
    assert why["GLOBAL_AT_CAP"].details == {"cap": 1, "active": 1}
    await station.fail.aenqueue()
    assert "GLOBAL_AT_CAP" not in await station.codes(f"entry:{await station.entry()}")


@pytest.mark.parametrize(
    ("theirs", "here", "found"),
    [
        ({"max_active_jobs": 1, "exclude_from_max_active_jobs": ("fail",)}, {}, True),
        ({}, {"max_active_jobs": 1}, False),
        ({"max_active_jobs": 1}, {"exclude_from_max_active_jobs": ("work",)}, True),
        ({"max_active_jobs": 1, "exclude_from_max_active_jobs": ("work",)}, {"max_active_jobs": 1}, False),
    ],
)
async def test_the_global_cap_is_that_of_the_servers_and_not_of_whoever_asks(station, theirs, here, found):
    station.opened(**theirs)
    await station.server()
    await station.work.aenqueue()
    await station.ticks("dispatch")
    await station.work.aenqueue()
    subject = f"entry:{await station.entry()}"
    async with Interlock(station.dsn, **here) as shell:
        codes = [blocker.code for blocker in (await shell.aexplain(subject)).blockers]
    assert ("GLOBAL_AT_CAP" in codes) is found


async def test_those_that_come_first_are_counted_in_the_order_of_dispatch(station):
    station.app.group("first", priority=5)
    await station.server()
    ids = [(await station.work.aenqueue(number)).id for number in range(3)]
    assert await station.codes(f"entry:{ids[0]}") == []
    why = await station.why(f"entry:{ids[2]}")
    assert list(why) == ["BEHIND"]
    assert why["BEHIND"].details == {"count": 2, "capped": False, "slots": 50}
    await station.work.using(priority=9).aenqueue()
    await station.work.using(group="first").aenqueue()
    await station.work.using(delay=HOUR, priority=60).aenqueue()
    assert (await station.why(f"entry:{ids[0]}"))["BEHIND"].details["count"] == 2
    assert await station.codes(f"entry:{await station.entry() - 1}") == []


async def test_work_of_a_paused_train_or_of_other_workers_is_not_in_the_way(station):
    await station.server()
    await station.fail.aenqueue()
    await station.work.aenqueue()
    subject = f"entry:{await station.entry()}"
    assert await station.codes(subject) == ["BEHIND"]
    await station.app.apause("fail")
    assert await station.codes(subject) == []
    await station.app.aresume("fail")
    await station.conn.execute("UPDATE interlock.work_queue SET train = 'theirs' WHERE train = 'fail'")
    assert await station.codes(subject) == []


async def test_dispatched_jobs_come_before_an_entry_and_in_their_order_before_a_job(station):
    await station.server()
    for number in range(3):
        await station.work.aenqueue(number)
    await station.ticks("dispatch")
    await station.work.aenqueue()
    assert (await station.why(f"entry:{await station.entry()}"))["BEHIND"].details["count"] == 3
    last = await station.execution()
    why = await station.why(f"execution:{last}")
    assert list(why) == ["BEHIND", "CLAIMED_NOT_STARTED"]
    assert why["BEHIND"].details["count"] == 2
    assert await station.codes(f"execution:{last - 2}") == ["CLAIMED_NOT_STARTED"]


async def test_counting_stops_at_a_limit_and_says_so(station):
    await station.server()
    await station.app.aenqueue_many([station.work.bind(number) for number in range(MOST + 20)])
    why = await station.why(f"entry:{await station.entry()}")
    assert why["BEHIND"].details == {"count": MOST, "capped": True, "slots": 50}
    assert f"{MOST}+ others" in why["BEHIND"].evidence


@pytest.mark.parametrize(
    ("slots", "concurrency", "found"),
    [
        (1, None, "of the 1 workers (1 slots) that run the train block, 1 have no free slot"),
        (9, 1, "of the 1 workers (9 slots) that run the train block, 1 have as many of it in hand as its concurrency="),
    ],
)
async def test_the_first_in_the_queue_waits_for_a_slot_and_is_told_so(station, slots, concurrency, found):
    station.opened(worker_slots=slots, polling_interval=timedelta(milliseconds=100))
    block, go_on = blocking(station.app, concurrency)

    async def waits() -> bool:
        return await station.codes(f"entry:{last.id}") == ["NO_FREE_SLOT"]

    async with station.app.running(["worker"]):
        await block.aenqueue()
        last = await block.aenqueue()
        await eventually(waits, what="the want of a slot")
        why = (await station.why(f"entry:{last.id}"))["NO_FREE_SLOT"]
        assert found in why.evidence
        assert why.command == "interlock executions list --active"
        go_on.set()
        await last.aresult(timeout=10)
        assert await station.codes(f"entry:{last.id}") == []


async def test_control_where_a_slot_is_free_none_is_said_to_be_missing(station):
    station.opened(worker_slots=9)
    station.app.group("off")
    block, go_on = blocking(station.app, 2)
    async with station.app.running(["worker"]):
        first, other = await block.aenqueue(), await block.using(group="off").aenqueue()
        await station.app.aset_group("off", enabled=False)

        async def runs() -> bool:
            return "running" in await station.standing(f"entry:{first.id}")

        await eventually(runs, what="the first")
        assert "NO_FREE_SLOT" not in await station.codes(f"entry:{other.id}")
        go_on.set()


def blocking(app, concurrency):
    """A train that goes on when the event is set."""
    go_on = asyncio.Event()

    @app.train(concurrency=concurrency)
    async def block() -> None:
        await go_on.wait()

    return block, go_on


async def test_a_train_that_no_live_worker_knows_is_named(station):
    await station.server()
    await station.work.aenqueue()
    await station.conn.execute("UPDATE interlock.work_queue SET train = 'renamed'")
    why = await station.why(f"entry:{await station.entry()}")
    assert list(why) == ["NO_WORKER_FOR_TRAIN"]
    assert why["NO_WORKER_FOR_TRAIN"].details == {"train": "renamed"}


class Elsewhere:
    """Takes nothing."""

    name = "https://runner"

    async def submit(self, _) -> None:
        raise ConnectionError("nobody at home")

    async def aclose(self) -> None:
        pass


async def test_a_train_that_is_submitted_elsewhere_wants_no_worker_and_says_why_the_submit_failed(station):
    @station.app.train(tags=["gpu"])
    async def render() -> None:
        pass

    await station.client()
    await render.aenqueue()
    station.app.add_submitter(Elsewhere(), trains=[render])
    await station.server()
    subject = f"entry:{await station.entry()}"
    assert await station.codes(subject) == []
    await station.ticks("dispatch")
    why = await station.why(subject)
    assert list(why) == ["RETRY_BACKOFF"]
    assert "failed (submit_failed): nobody at home; that was failed submit 1" in why["RETRY_BACKOFF"].evidence


async def test_a_train_that_no_runner_knows_wants_one_as_soon_as_there_are_runners(station):
    @station.app.train(tags=["gpu"])
    async def render() -> None:
        pass

    await station.client()
    await render.aenqueue()
    station.app.add_submitter(Elsewhere(), trains=[render])
    await station.server()
    runner = Interlock(station.dsn, runner_secret="s")  # of older code
    async with runner.running(runner="127.0.0.1:0"):
        why = await station.why(f"entry:{await station.entry()}")
    assert list(why) == ["NO_WORKER_FOR_TRAIN"]
    assert "none of the 1 live runners knows it" in why["NO_WORKER_FOR_TRAIN"].evidence


async def test_control_without_a_submitter_a_train_with_the_tags_of_nobody_wants_a_worker(station):
    @station.app.train(tags=["gpu"])
    async def render() -> None:
        pass

    await station.server()
    await render.aenqueue()
    assert await station.codes(f"entry:{await station.entry()}") == ["NO_WORKER_FOR_TRAIN"]


async def test_without_a_server_nobody_dispatches(station):
    await station.client()
    await station.work.aenqueue()
    why = await station.why(f"entry:{await station.entry()}")
    assert list(why) == ["NO_DISPATCHER"]
    assert why["NO_DISPATCHER"].command == "interlock run"


async def test_a_server_that_drains_or_whose_lease_is_over_does_not_count(station):
    await station.client()
    await station.work.aenqueue()
    subject = f"entry:{await station.entry()}"
    await station.conn.execute(
        "INSERT INTO interlock.server (id, name, roles, trains, tags, slots, host, pid, version, lease, lease_until,"
        " renewed_at, steady_since, started_at) VALUES (gen_random_uuid(), 's', '{worker}', '{work}', '{}', 1, 'h', 1,"
        " '0', interval '1 h', now() + interval '1 h', now(), now(), now())"
    )
    assert await station.codes(subject) == []
    await station.conn.execute("UPDATE interlock.server SET lease_until = now() - interval '1 s'")
    assert await station.codes(subject) == ["NO_DISPATCHER"]
    await station.conn.execute("UPDATE interlock.server SET state = 'draining', lease_until = now() + interval '1 h'")
    assert await station.codes(subject) == ["NO_DISPATCHER"]


async def test_a_dispatched_job_that_nobody_claimed_says_who_could(station):
    await station.server()
    await station.work.aenqueue()
    await station.ticks("dispatch")
    why = await station.why(f"execution:{await station.execution()}")
    assert list(why) == ["CLAIMED_NOT_STARTED"]
    assert "1 workers with 50 slots could" in why["CLAIMED_NOT_STARTED"].evidence


async def test_a_job_whose_holder_is_lost_says_that_recovery_takes_over(station):
    await station.server()
    await station.work.aenqueue()
    await station.ticks("dispatch")
    execution = await station.execution()
    await station.conn.execute("DELETE FROM interlock.background_job")
    await station.conn.execute(
        "UPDATE interlock.execution SET state = 'in_progress', server_id = (SELECT id FROM interlock.server LIMIT 1),"
        " host = 'h', claim_token = $1, started_at = now()",
        uuid4(),
    )
    assert await station.codes(f"execution:{execution}") == []
    assert "has been running on" in await station.standing(f"execution:{execution}")
    await station.conn.execute("UPDATE interlock.execution SET server_id = $1", uuid4())
    why = await station.why(f"execution:{execution}")
    assert list(why) == ["CLAIMED_NOT_STARTED"]
    assert "claimed by h, which lost its lease; recovery" in why["CLAIMED_NOT_STARTED"].evidence
    assert why["CLAIMED_NOT_STARTED"].command == "interlock servers list --all"
    await station.conn.execute("UPDATE interlock.server SET lease_until = now() - interval '1 s'")
    why = await station.why(f"execution:{execution}")
    assert why["CLAIMED_NOT_STARTED"].evidence.endswith("queues it again in its place, but no server lives")
    assert why["CLAIMED_NOT_STARTED"].command == "interlock run"


async def test_a_job_that_was_submitted_elsewhere_says_where(station):
    await station.server()
    await station.work.aenqueue()
    await station.ticks("dispatch")
    await station.conn.execute("DELETE FROM interlock.background_job")
    subject = f"execution:{await station.execution()}"
    assert "its job is gone" in (await station.why(subject))["CLAIMED_NOT_STARTED"].evidence
    await station.conn.execute("UPDATE interlock.execution SET submitter = 'celery'")
    why = await station.why(subject)
    assert list(why) == ["CLAIMED_NOT_STARTED"]
    assert "submitted to celery" in why["CLAIMED_NOT_STARTED"].evidence


async def test_what_ended_well_is_not_blocked_by_anything(station):
    await station.server()
    handle = await station.work.aenqueue()
    await station.step.drain()
    subject = f"entry:{handle.id}"
    assert await station.codes(subject) == []
    assert f"execution {await station.execution()} completed" in await station.standing(subject)
    await station.conn.execute("DELETE FROM interlock.work_queue")
    assert await station.codes(subject) == []


async def test_an_entry_that_was_cancelled_says_so(station):
    await station.client()
    handle = await station.work.aenqueue()
    await station.app.acancel_entry(handle.id)
    assert await station.standing(f"entry:{handle.id}") == f"entry {handle.id} is cancelled"


async def test_a_transaction_that_holds_our_rows_for_long_is_named_with_its_backend(station):
    await station.server()
    await station.work.aenqueue()
    subject = f"entry:{await station.entry()}"
    other = await asyncpg.connect(station.dsn, server_settings={"application_name": "a report"})
    try:
        async with other.transaction():
            await other.execute("SELECT 1 FROM interlock.work_queue")
            assert await station.codes(subject, long_transaction=timedelta(0)) == []
            await other.execute("SELECT 1 FROM interlock.work_queue FOR UPDATE")
            assert await station.codes(subject) == []
            why = await station.why(subject, long_transaction=timedelta(0))
            assert list(why) == ["LONG_TRANSACTION"]
            assert why["LONG_TRANSACTION"].details == {"pids": [other.get_server_pid()]}
            assert "a report, idle in transaction" in why["LONG_TRANSACTION"].evidence
    finally:
        await other.close()


async def test_a_newer_schema_is_told_and_one_that_cannot_be_used_is_the_only_answer(station):
    await station.server()
    await station.work.aenqueue()
    subject, insert = f"entry:{await station.entry()}", "INSERT INTO interlock.schema_version VALUES (99, 'x', $1)"
    await station.conn.execute(insert, 1)
    assert await station.codes(subject) == ["SCHEMA_SKEW"]
    await station.conn.execute("UPDATE interlock.schema_version SET oldest_code = 99 WHERE version = 99")
    why = await station.why(subject)
    assert list(why) == ["SCHEMA_SKEW"]
    assert why["SCHEMA_SKEW"].command == "interlock schema status"
    await station.conn.execute("DELETE FROM interlock.schema_version WHERE version > 1")
    assert (await station.why("whatever"))["SCHEMA_SKEW"].command == "interlock schema apply"
