"""What a process inherits through a fork is never used: first use in the child opens its own."""

from __future__ import annotations

import asyncpg

from tests.harness.waiting import eventually

BEGINNING = """
    import asyncio, os, sys
    from datetime import timedelta
    from interlock.runtime.keeper import Keeper
    from interlock.runtime.server import describe_server
    from interlock.runtime.settings import RuntimeSettings
    from interlock.store.database import Database
    from interlock.store.listen import NoticeHub
    from interlock.store.notify import Notifier
    from interlock.store.settings import StoreSettings
    from tests.harness.child import tell

    door = Database(sys.argv[1], StoreSettings())
    settings = RuntimeSettings(lease=timedelta(seconds=3), heartbeat=timedelta(seconds=0.3))
    ignore = lambda event: None
    loop = asyncio.new_event_loop()

    async def backend(conn):
        return await conn.fetchval("select pg_backend_pid()")

    def in_child(work, *, notices=True):
        parent = os.getpid()
        if (child := os.fork()) == 0:
            if not notices:
                os.getpid = lambda: parent  # the control: all that looks at its own number takes itself for the parent
            try:
                asyncio.set_event_loop(None)
                asyncio.new_event_loop().run_until_complete(work())
            except BaseException as error:
                tell("child_failed", error=repr(error))
                os._exit(1)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""
KEEPER = """
    keeper = Keeper(door, describe_server(settings), settings, emit=ignore)
    loop.run_until_complete(keeper.start())
    mine, conn = keeper.server, keeper._lease._conn

    async def child():
        inherited = {"server": keeper.server, "remaining": keeper.remaining.total_seconds()}
        keeper.stop()
        lived = keeper.lives_here()
        await keeper.start()
        tell("child", **inherited, lived=lived, own=keeper.server, same_line=keeper._lease._conn is conn)
        keeper.stop()
        await keeper.run()

    status = in_child(child)
    before = keeper._loop.ticks
    keeper._loop.wake()

    async def ticks_again():
        while keeper._loop.ticks == before:
            await asyncio.sleep(0.01)

    loop.run_until_complete(asyncio.wait_for(ticks_again(), 10))
    tell("parent", status=status, server=keeper.server, mine=mine, lives=keeper.lives_here())
    keeper.stop()
    loop.run_until_complete(keeper.run())
"""
HUB = """
    heard = []
    hub = NoticeHub(door, emit=ignore)
    hub.subscribe("work", heard.append)
    loop.run_until_complete(hub.tick())
    before = loop.run_until_complete(backend(hub._conn))

    async def child():
        inherited = hub._conn
        await hub.tick()
        tell("child", backend=await backend(hub._conn), listening=hub.listening, same_line=hub._conn is inherited)
        await hub.close()

    status = in_child(child)

    async def hears():
        notifier = Notifier(door, emit=ignore)
        notifier.notify("work:after")
        while "after" not in heard:
            await asyncio.sleep(0.01)
        await notifier.close()
        return await backend(hub._conn)

    after = loop.run_until_complete(asyncio.wait_for(hears(), 10))
    tell("parent", status=status, before=before, after=after)
    loop.run_until_complete(hub.close())
    loop.run_until_complete(door.close())
"""
NOTIFIER = """
    notifier = Notifier(door, emit=lambda event: tell("failed", error=str(event)))

    async def begin():
        notifier.notify("work:parent")  # its task has not run yet when the process forks

    loop.run_until_complete(begin())

    async def child():
        notifier.notify("work:child")
        await notifier.close()
        await door.close()

    status = in_child(child)
    loop.run_until_complete(notifier._sending)
    loop.run_until_complete(door.close())
    tell("parent", status=status)
"""

UNNOTICED_KEEPER = """
    keeper = Keeper(door, describe_server(settings), settings, emit=ignore)
    loop.run_until_complete(keeper.start())

    async def child():
        tell("child", server=keeper.server, remaining=keeper.remaining.total_seconds())

    tell("parent", status=in_child(child, notices=False), mine=keeper.server)
    keeper.stop()
    loop.run_until_complete(keeper.run())
"""
UNNOTICED_HUB = """
    hub = NoticeHub(door, emit=ignore)
    hub.subscribe("work", ignore)
    loop.run_until_complete(hub.tick())

    async def child():
        await asyncio.wait_for(hub.tick(), 5)

    tell("parent", status=in_child(child, notices=False))
    os._exit(0)  # the line is spoilt for the parent too
"""


def ended(process) -> tuple[dict, dict]:
    parent = process.expect_blocking("parent", 60)
    assert process.heard("child_failed") == []
    assert parent["status"] == 0
    assert process.wait_blocking() == 0
    return parent, next(iter(process.heard("child")), {})


def test_a_child_has_no_lease_until_it_registers_itself_and_the_parents_lives_on(fleet, migrated):
    parent, child = ended(fleet.start(BEGINNING + KEEPER, migrated))
    assert (child["server"], child["remaining"], child["lived"]) == (None, 0, False)
    assert child["own"] not in (parent["mine"], "None")
    assert not child["same_line"]
    assert parent["server"] == parent["mine"]
    assert parent["lives"]


def test_a_child_listens_on_a_connection_of_its_own_and_the_parent_still_hears(fleet, database):
    parent, child = ended(fleet.start(BEGINNING + HUB, database))
    assert child["listening"]
    assert not child["same_line"]
    assert child["backend"] != parent["before"] == parent["after"]


async def test_a_child_sends_its_notices_though_the_parent_was_about_to_send(fleet, database):
    heard: list[str] = []
    conn = await asyncpg.connect(database)
    try:
        await conn.add_listener("interlock_interlock", lambda *notice: heard.append(notice[-1]))
        process = fleet.start(BEGINNING + NOTIFIER, database)
        assert (await process.expect("parent", 60))["status"] == 0
        assert process.heard("child_failed") == process.heard("failed") == []
        await eventually(lambda: "work:child" in heard)
    finally:
        await conn.close()


def test_control_a_child_that_does_not_notice_the_fork_believes_in_its_parents_lease(fleet, migrated):
    parent, child = ended(fleet.start(BEGINNING + UNNOTICED_KEEPER, migrated))
    assert child["server"] == parent["mine"]
    assert child["remaining"] > 0


def test_control_a_child_that_does_not_notice_the_fork_uses_its_parents_line(fleet, database):
    process = fleet.start(BEGINNING + UNNOTICED_HUB, database)
    assert process.expect_blocking("parent", 60)["status"] == 1
    [failed] = process.heard("child_failed")
    assert "attached to a different loop" in failed["error"]
