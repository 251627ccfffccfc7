"""A handle answers how its work is doing and what came of it, over all attempts."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import pytest

from interlock import failpoints
from interlock.dispatch import gateway
from interlock.dispatch.results import Endings
from interlock.errors import (
    DatabaseUnavailable,
    ResultTimeout,
    UnknownWork,
    WorkCancelled,
    WorkDeadLettered,
    WorkFailed,
)
from interlock.store.database import Database
from interlock.store.settings import StoreSettings
from interlock.trains.handle import Handle
from tests.harness.waiting import eventually
from tests.integration.dispatch.shop import Shop


@pytest.fixture
async def shop(migrated):
    """A client: nothing runs."""
    shop = Shop(migrated)
    async with shop.app:
        yield shop


@pytest.fixture
async def server(migrated):
    """A server of the same app, in the same process."""
    shop = Shop(migrated)
    async with shop.app.running(["worker"]):
        yield shop


async def test_the_output_comes_back_in_its_type(server):
    assert await (await server.greet.aenqueue("Ada", times=2)).aresult(timeout=60) == "hello Ada! hello Ada! "
    assert await (await server.double.aenqueue(21)).aresult(timeout=60) == 42


async def test_a_client_waits_for_what_another_server_runs(shop, server):
    handle = await shop.double.aenqueue(4)
    assert await handle.aresult(timeout=60) == 8
    assert await handle.astatus() == "completed"


async def test_a_blocking_client_waits_in_a_thread(shop, server):
    def work() -> tuple[int, str]:
        handle = shop.double.enqueue(5)
        return handle.result(timeout=timedelta(seconds=20)), handle.status()

    assert await asyncio.to_thread(work) == (10, "completed")


async def test_a_notice_ends_the_wait_long_before_the_next_look(shop, server, monkeypatch):
    monkeypatch.setattr(gateway, "FIRST_POLL", 60.0)
    monkeypatch.setattr(gateway, "LONGEST_POLL", 60.0)
    assert await (await shop.double.aenqueue(1)).aresult(timeout=50) == 2
    began = time.monotonic()
    assert await (await shop.double.aenqueue(2)).aresult(timeout=50) == 4
    assert time.monotonic() - began < 20


async def test_a_result_is_found_by_looking_when_no_notice_comes(shop, conn, monkeypatch):
    handle = await shop.greet.aenqueue("Ada")
    waits = asyncio.Event()

    async def reached() -> None:
        waits.set()

    failpoints.arm("dispatch.waits_for_result", reached)
    try:
        waiting = asyncio.create_task(handle.aresult(timeout=60))
        await asyncio.wait_for(waits.wait(), 60)
        await end(conn, handle, "completed", output='"by hand"')
        assert await waiting == "by hand"
    finally:
        failpoints.disarm()


async def test_a_result_follows_the_retries_of_its_work(server):
    assert await (await server.flaky.aenqueue()).aresult(timeout=60) == 3


async def test_what_failed_for_good_is_raised_with_what_the_train_raised(server):
    handle = await server.fails.aenqueue("out of paper")
    with pytest.raises(WorkDeadLettered) as failed:
        await handle.aresult(timeout=20)
    error = failed.value
    assert (error.failure, error.error_type, error.error_message) == ("error", "ValueError", "out of paper")
    assert "raise ValueError(text)" in error.traceback
    assert (error.reason, error.entry_id) == ("max_attempts", handle.id)
    assert await handle.astatus() == "dead_lettered"


async def test_the_failure_of_a_chain_names_its_junction_and_so_does_its_dead_letter(server, conn):
    handle = await server.load.aenqueue(7)
    with pytest.raises(
        WorkDeadLettered, match=r"of train 'load' failed in junction 'write' \(error\): KeyError: 7"
    ) as failed:
        await handle.aresult(timeout=60)
    assert failed.value.junction == "write"
    assert (await server.app.views.dead_letter(failed.value.dead_letter_id)).letter.junction == "write"
    assert [letter.junction for letter in (await server.app.views.dead_letters()).lines] == ["write"]
    await conn.execute("UPDATE interlock.dead_letter SET state = 'acknowledged', resolved_at = now()")
    with pytest.raises(WorkFailed, match="in junction 'write'"):
        await handle.aresult(timeout=20)


async def test_the_failure_of_a_train_that_is_no_chain_names_no_junction(server):
    with pytest.raises(WorkDeadLettered, match=r"of train 'fails' failed \(error\)") as failed:
        await (await server.fails.aenqueue("out of paper")).aresult(timeout=20)
    assert failed.value.junction is None


async def test_an_acknowledged_dead_letter_leaves_a_plain_failure(server, conn):
    handle = await server.fails.aenqueue("out of ink")
    with pytest.raises(WorkDeadLettered):
        await handle.aresult(timeout=20)
    await conn.execute("UPDATE interlock.dead_letter SET state = 'acknowledged', resolved_at = now()")
    with pytest.raises(WorkFailed, match="out of ink") as failed:
        await handle.aresult(timeout=20)
    assert type(failed.value) is WorkFailed


async def test_cancelled_work_says_so(shop, conn):
    handle = await shop.greet.aenqueue("Ada")
    await conn.execute("UPDATE interlock.work_queue SET state = 'cancelled', left_at = now()")
    with pytest.raises(WorkCancelled):
        await handle.aresult(timeout=5)
    other = await shop.greet.aenqueue("Bob")
    await end(conn, other, "cancelled")
    with pytest.raises(WorkCancelled):
        await other.aresult(timeout=5)


async def test_a_train_that_cancels_itself_says_why_to_who_waits(shop, server):
    with pytest.raises(WorkCancelled, match="was cancelled: nothing to do"):
        await (await shop.idle.aenqueue()).aresult(timeout=20)


async def test_an_entry_that_could_not_be_dispatched_says_why(shop, conn):
    handle = await shop.greet.aenqueue("Ada")
    await conn.execute("UPDATE interlock.work_queue SET state = 'failed', left_at = now(), failure = 'it is cursed'")
    with pytest.raises(WorkFailed, match="it is cursed"):
        await handle.aresult(timeout=5)


async def test_a_wait_ends_at_its_timeout_and_the_work_goes_on(shop):
    handle = await shop.greet.using(delay=timedelta(hours=1)).aenqueue("Ada")
    with pytest.raises(ResultTimeout) as timed_out:
        await handle.aresult(timeout=0.05)
    assert isinstance(timed_out.value, TimeoutError)
    assert timed_out.value.status == await handle.astatus() == "queued"
    with pytest.raises(ResultTimeout):
        await asyncio.to_thread(handle.result, 0)


async def waiting_in_an_outage(proxy, handle, timeout: float) -> asyncio.Task:  # noqa: ASYNC109  handed on
    """The database goes as soon as somebody waits, and is looked for in vain."""
    looks = asyncio.Queue()

    async def reached() -> None:
        if looks.empty():
            await asyncio.to_thread(proxy.cut)
        looks.put_nowait(None)

    failpoints.arm("dispatch.waits_for_result", reached)
    waiting = asyncio.create_task(handle.aresult(timeout=timeout))
    await eventually(lambda: waiting.done() or looks.qsize() > 2, 60, "a look in vain")
    return waiting


@pytest.fixture
async def remote(migrated, proxy_to):
    """A client whose network can be cut."""
    proxy = proxy_to(migrated)
    shop = Shop(proxy.dsn(migrated))
    async with shop.app:
        yield shop, proxy
        failpoints.disarm()
        await asyncio.to_thread(proxy.heal)


async def test_who_waits_when_the_database_goes_gets_the_result_when_it_is_back(remote, conn):
    shop, proxy = remote
    handle = await shop.greet.aenqueue("Ada")
    waiting = await waiting_in_an_outage(proxy, handle, 60)
    await end(conn, handle, "completed", output='"by hand"')
    await asyncio.to_thread(proxy.heal)
    assert await waiting == "by hand"


async def test_a_wait_ends_at_its_timeout_also_in_an_outage_and_names_it(remote):
    shop, proxy = remote
    with pytest.raises(ResultTimeout) as timed_out:
        await (await waiting_in_an_outage(proxy, await shop.greet.aenqueue("Ada"), 1.5))
    assert timed_out.value.status == "queued"
    assert isinstance(timed_out.value.__cause__, OSError | DatabaseUnavailable)


async def test_work_that_never_was_is_unknown(shop):
    with pytest.raises(UnknownWork):
        await Handle(4711, shop.greet, shop.app.work).astatus()


async def test_many_waits_share_one_connection(shop, server, conn):
    handles = await shop.app.aenqueue_many([shop.double.bind(number) for number in range(30)])
    assert await asyncio.gather(*(handle.aresult(timeout=60) for handle in handles)) == [2 * n for n in range(30)]
    listeners = await conn.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name = 'interlock listener'"
    )
    assert listeners == 2  # the server's and the client's


async def test_a_close_that_is_cut_short_leaves_no_connection(migrated, monkeypatch):
    waits, closing = Endings(Database(migrated, StoreSettings()), emit=lambda _: None), asyncio.Event()
    monkeypatch.setattr(waits._loop, "stop", closing.set)
    with waits.watching(1):
        await eventually(lambda: waits._hub.listening)
    listener = waits._hub._conn
    close = asyncio.create_task(waits.close())
    await closing.wait()
    close.cancel()
    with pytest.raises(asyncio.CancelledError):
        await close
    assert listener.is_closed()


async def end(conn, handle, state: str, output: str | None = None) -> None:
    """What a worker would have written."""
    await conn.execute("UPDATE interlock.work_queue SET state = 'dispatched', left_at = now() WHERE id = $1", handle.id)
    await conn.execute(
        "INSERT INTO interlock.execution (state, entry_id, first_entry_id, kind, train, input, group_id, attempt,"
        " crashes, max_attempts, max_crashes, retry_delay, max_retry_delay, retry_backoff, ended_at, output)"
        " SELECT $2, id, id, kind, train, input, group_id, 1, 0, 3, 3, '1 s', '1 s', 1, now(), $3::jsonb"
        " FROM interlock.work_queue WHERE id = $1",
        handle.id,
        state,
        output,
    )
