"""The lease is kept away from the event loop of the work, is never given up by itself, and is left in order."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import threading
import time
from datetime import timedelta
from uuid import uuid4

import pytest

from interlock.errors import DatabaseUnavailable
from interlock.observe.events import ComponentAbandoned
from interlock.observe.events.server import (
    LeaseLostByServer,
    LeaseRenewalFailed,
    ServerDraining,
    ServerGone,
    ServerRegistered,
)
from interlock.runtime import keeper as keeper_module
from interlock.runtime import supervisor as supervisor_module
from interlock.runtime.supervisor import Supervisor
from interlock.store.server import Servers
from tests.harness.ports import free_port
from tests.harness.waiting import eventually
from tests.integration.runtime.conftest import LEASE, SHORT, left

THREE_LEASES = 3 * LEASE
KEEP_STEADY = "UPDATE interlock.server SET lease_until = now() + interval '1 min', renewed_at = now() WHERE id = $1"


def keeper_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "interlock-keeper"]


async def marked_lost(house, id) -> None:  # noqa: A002  the row's own word
    async with house.door().connection() as conn:
        await conn.execute("UPDATE interlock.server SET state = 'lost', ended_at = now() WHERE id = $1", id)


async def test_a_server_registers_with_what_it_says_of_itself(house):
    keeper = await house.started("one", roles=["worker", "manifests"], tags=["gpu"], trains=["b", "a"], slots=7)
    (row,) = await house.rows("*")
    assert (row["id"], row["name"], row["app"], row["state"]) == (keeper.server, "one", "shop", "alive")
    assert (row["host"], row["pid"], row["slots"]) == (socket.gethostname(), os.getpid(), 7)
    assert (row["roles"], row["trains"], row["tags"]) == (["manifests", "worker"], ["a", "b"], ["gpu"])
    assert 0 < keeper.remaining.total_seconds() <= LEASE
    assert [event.server for event in house.told(ServerRegistered)] == [keeper.server]


async def test_two_servers_of_one_name_and_host_have_ids_of_their_own(house):
    first, second = await house.started("same"), await house.started("same")
    assert first.server != second.server
    assert [row["name"] for row in await house.rows()] == ["same", "same"]


async def judged_from_a_thread(house, keeper, during) -> set:
    """What a steady judge in a thread of its own finds lost while `during` runs here."""
    lost, done = set(), threading.Event()

    async def judge() -> None:
        database = house.door()
        servers = Servers(database.sql)
        async with database.connection() as conn:
            while not done.is_set():
                await conn.execute(KEEP_STEADY, keeper)
                lost.update(one.id for one in await servers.mark_lost(conn, keeper))
                await asyncio.sleep(0.05)
        await database.close()

    thread = threading.Thread(target=lambda: asyncio.run(judge()), name="judge")
    thread.start()
    try:
        await during()
    finally:
        done.set()
        await asyncio.to_thread(thread.join)
    return lost


async def steady_judge(house):
    """A row of a server that has been steady for an hour; the judging thread keeps its lease."""
    id = uuid4()  # noqa: A001  the row's own word
    database = house.door()
    async with database.connection() as conn:
        await Servers(database.sql).register(conn, id, house.keeper("judge").profile, SHORT["lease"])
        await conn.execute("UPDATE interlock.server SET steady_since = now() - interval '1 h' WHERE id = $1", id)
    return id


async def block_the_loop() -> None:
    time.sleep(THREE_LEASES)  # noqa: ASYNC251  a body that blocks the event loop is the subject


async def test_a_blocked_event_loop_does_not_lose_the_lease(house):
    keeper, judge = await house.started(), await steady_judge(house)
    mine = keeper.server
    assert await judged_from_a_thread(house, judge, block_the_loop) == set()
    assert keeper.server == mine
    assert (await house.states())[mine] == "alive"
    assert house.told(LeaseLostByServer) == house.told(LeaseRenewalFailed) == []


async def test_control_a_heartbeat_on_the_blocked_event_loop_loses_it(house):
    keeper, judge = house.keeper(), await steady_judge(house)
    await keeper._lease.register()
    mine = keeper.server
    heartbeat = asyncio.create_task(keeper._loop.run())
    await asyncio.sleep(0)
    try:
        assert await judged_from_a_thread(house, judge, block_the_loop) == {mine}
    finally:
        keeper.stop()
        await heartbeat
        await keeper._lease.leave()


async def test_a_server_that_was_marked_lost_says_so_and_registers_anew_with_its_next_heartbeat(house, monkeypatch):
    keeper = await house.started()
    old, told, after_heartbeats, renew = keeper.server, [], [], keeper._lease.renew
    keeper.on_lost(told.append)

    async def renewed() -> None:
        await renew()
        after_heartbeats.append(keeper.server)

    await marked_lost(house, old)
    monkeypatch.setattr(keeper._lease, "renew", renewed)
    await eventually(lambda: after_heartbeats, 60)
    assert after_heartbeats[0] not in (old, None)
    assert told == [old]
    assert [event.server for event in house.told(LeaseLostByServer)] == [old]
    assert await house.states() == {old: "lost", keeper.server: "alive"}
    assert {row["name"] for row in await house.rows()} == {"one"}


async def test_stopping_leaves_the_registry(house):
    keeper = await house.started()
    mine = keeper.server
    await left(keeper)
    assert await house.states() == {mine: "gone"}
    assert [event.server for event in house.told(ServerGone)] == [mine]
    assert keeper.server is None
    assert keeper.remaining.total_seconds() == 0


async def test_a_draining_server_keeps_its_lease_until_it_stops(house):
    keeper = await house.started()
    mine = keeper.server
    keeper.draining()
    await eventually(lambda: house.told(ServerDraining), 60)
    assert await house.states() == {mine: "draining"}
    assert [event.server for event in house.told(ServerDraining)] == [mine]
    before = (await house.rows("renewed_at"))[0][0]
    await eventually(lambda: renewed_after(house, before), 60)
    await left(keeper)
    assert await house.states() == {mine: "gone"}


async def renewed_after(house, moment) -> bool:
    return (await house.rows("renewed_at"))[0][0] > moment


async def test_a_draining_server_that_was_marked_lost_is_draining_under_its_new_id(house):
    keeper = await house.started()
    old = keeper.server
    keeper.draining()
    await eventually(lambda: house.told(ServerDraining), 60)
    await marked_lost(house, old)
    await eventually(lambda: keeper.server not in (old, None), 60)

    async def drains() -> bool:
        return (await house.states())[keeper.server] == "draining"

    await eventually(drains, 60)


async def test_no_database_is_a_typed_error_and_leaves_no_thread(house):
    keeper = house.keeper(dsn=f"postgresql://nobody@127.0.0.1:{free_port()}/none")
    with pytest.raises(DatabaseUnavailable):
        await keeper.start()
    assert keeper_threads() == []
    assert not keeper.lives_here()


async def test_a_thread_that_gets_no_event_loop_is_an_error_of_the_start(house, monkeypatch):
    def none_left():
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(asyncio.events, "new_event_loop", none_left)
    async with asyncio.timeout(10):
        with pytest.raises(OSError, match="Too many open files"):
            await house.keeper().start()
    assert keeper_threads() == []


async def test_a_start_that_is_given_up_leaves_neither_a_thread_nor_a_living_row(house, proxy_to):
    proxy = proxy_to(house.dsn)
    keeper = house.keeper(dsn=proxy.dsn(house.dsn))
    proxy.half_open()
    starting = asyncio.create_task(keeper.start())
    await eventually(lambda: proxy.accepted > 0, 60)
    starting.cancel()
    proxy.heal()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await eventually(lambda: not keeper_threads(), 60, "the end of the keeper")
    assert "alive" not in (await house.states()).values()


async def test_a_start_that_is_given_up_as_it_succeeds_has_left_the_registry_when_it_returns(house, monkeypatch):
    """Who gave it up may end the process next, and the thread with it."""
    keeper, here, registered = house.keeper(), asyncio.get_running_loop(), asyncio.Event()
    register, leave = keeper._lease.register, keeper._lease.leave

    async def register_and_tell() -> None:
        await register()
        here.call_soon_threadsafe(registered.set)
        await asyncio.sleep(0.2)

    async def leave_slowly() -> None:
        await asyncio.sleep(0.2)
        await leave()

    monkeypatch.setattr(keeper._lease, "register", register_and_tell)
    monkeypatch.setattr(keeper._lease, "leave", leave_slowly)
    starting = asyncio.create_task(keeper.start())
    await registered.wait()
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert list((await house.states()).values()) == ["gone"]


class NeverEnds:
    name = "job"

    async def start(self) -> None: ...

    async def run(self) -> None:
        await asyncio.Event().wait()

    def stop(self) -> None: ...


@pytest.mark.parametrize("forced", [False, True], ids=["deadline", "forced"])
async def test_a_server_whose_time_to_stop_is_over_has_left_the_registry_when_it_ends(house, monkeypatch, forced):
    keeper = house.keeper()
    leave = keeper._lease.leave

    async def leave_slowly() -> None:
        await asyncio.sleep(0.2)
        await leave()

    monkeypatch.setattr(keeper._lease, "leave", leave_slowly)
    monkeypatch.setattr(keeper_module, "LEAVING", 60)
    monkeypatch.setattr(supervisor_module, "_FORCED_CLEANUP", timedelta(minutes=1))
    limit = timedelta(hours=1) if forced else timedelta(milliseconds=1)
    server = Supervisor([keeper, NeverEnds()], emit=house.events.append, shutdown_timeout=limit)
    await server.start()
    if forced:
        server.force()
    await server.stop()
    assert list((await house.states()).values()) == ["gone"]
    assert house.told(ComponentAbandoned) == []


def never_answers(keeper, monkeypatch) -> None:
    """The registration arrives and is committed; its answer does not come back."""
    register = keeper._lease.servers.register

    async def silent(*arguments) -> None:
        await register(*arguments)
        await asyncio.Event().wait()

    monkeypatch.setattr(keeper._lease.servers, "register", silent)


async def test_a_registration_that_nobody_confirmed_is_withdrawn(house, monkeypatch):
    keeper = house.keeper()
    never_answers(keeper, monkeypatch)
    with pytest.raises(DatabaseUnavailable, match=r"no answer within 0\.6 s"):
        await keeper.start()
    assert list((await house.states()).values()) == ["gone"]
    assert keeper.server is None
    assert keeper_threads() == []


async def test_control_a_registration_that_is_not_withdrawn_looks_alive(house, monkeypatch):
    keeper = house.keeper()
    never_answers(keeper, monkeypatch)

    async def keep_silent(_server) -> None:
        await keeper._lease.disconnect()

    monkeypatch.setattr(keeper._lease, "_withdraw", keep_silent)
    with pytest.raises(DatabaseUnavailable):
        await keeper.start()
    assert list((await house.states()).values()) == ["alive"]


async def test_a_line_that_went_dead_is_replaced_and_the_lease_is_still_ours(house, proxy_to):
    proxy = proxy_to(house.dsn)
    keeper = await house.started(dsn=proxy.dsn(house.dsn))
    mine = keeper.server
    proxy.half_open()
    await eventually(lambda: house.told(LeaseRenewalFailed), 60)
    await eventually(lambda: keeper.remaining.total_seconds() == 0, 60)
    proxy.heal()
    began = time.monotonic()
    await eventually(lambda: keeper.remaining.total_seconds() > 0, 60)
    assert time.monotonic() - began < 15
    assert await house.states() == {mine: "alive"}
    assert keeper.server == mine


async def test_a_server_that_cannot_register_anew_at_once_does_so_with_a_later_heartbeat(house, monkeypatch):
    keeper = await house.started()
    old, register = keeper.server, keeper._lease.servers.register
    failures = iter([OSError("the line is busy")])

    async def fail_once(*arguments):
        for failure in failures:
            raise failure
        return await register(*arguments)

    monkeypatch.setattr(keeper._lease.servers, "register", fail_once)
    await marked_lost(house, old)
    await eventually(lambda: keeper.server not in (old, None), 60)
    assert await house.states() == {old: "lost", keeper.server: "alive"}
    assert len(house.told(LeaseLostByServer)) == 1
