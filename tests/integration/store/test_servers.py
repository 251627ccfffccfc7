"""The server table: guarded moves, one row per registration."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import asyncpg
import pytest

from interlock.model.lifecycle import ServerState
from interlock.model.server import ServerProfile


async def test_a_server_registers_with_all_it_says_of_itself(registry):
    profile = ServerProfile(
        name="one",
        host="h",
        pid=7,
        version="1.2",
        app="billing",
        roles=("worker",),
        trains=("a", "b"),
        tags=("gpu",),
        slots=5,
    )
    remaining = await registry.servers.register(registry.conn, id := uuid4(), profile, timedelta(seconds=10))  # noqa: A001  the row's own word
    assert timedelta(seconds=9) < remaining <= timedelta(seconds=10)
    [row] = await registry.servers.list(registry.conn)
    assert (row.id, row.profile, row.state, row.ended_at) == (id, profile, ServerState.ALIVE, None)
    assert row.heartbeat_age < timedelta(seconds=5)


async def test_one_id_registers_once(registry):
    id = await registry.register()  # noqa: A001  the row's own word
    profile = ServerProfile(name="two", host="h", pid=1, version="0")
    with pytest.raises(asyncpg.UniqueViolationError):
        await registry.servers.register(registry.conn, id, profile, timedelta(seconds=10))


async def test_a_renewal_gives_a_whole_lease_again(registry):
    one = await registry.register(lease=10)
    await registry.age(one, lease_until=-1, renewed_at=4)
    remaining = await registry.servers.renew_if_held(registry.conn, one)
    assert timedelta(seconds=9) < remaining <= timedelta(seconds=10)


@pytest.mark.parametrize(("late", "is_steady"), [(4, True), (6, False)])
async def test_a_renewal_later_than_half_a_lease_ends_the_steadiness(registry, late, is_steady):
    one = await registry.register(lease=10)
    await registry.age(one, renewed_at=late, steady_since=100)
    await registry.servers.renew_if_held(registry.conn, one)
    steady = await registry.conn.fetchval("SELECT steady_since < now() - interval '50 s' FROM interlock.server")
    assert steady is is_steady


async def test_a_server_drains_then_leaves_and_nothing_else_moves_it(registry):
    one, conn, servers = await registry.register(), registry.conn, registry.servers
    assert not await servers.leave_if_draining(conn, one)
    assert await servers.drain_if_alive(conn, one)
    assert not await servers.drain_if_alive(conn, one)
    assert await servers.renew_if_held(conn, one) is not None
    assert await servers.leave_if_draining(conn, one)
    assert not await servers.leave_if_draining(conn, one)
    assert not await servers.drain_if_alive(conn, one)
    assert await servers.renew_if_held(conn, one) is None
    assert await registry.state(one) == "gone"


async def test_a_server_marked_lost_cannot_renew_drain_or_leave(registry):
    judge, dead = await registry.register("judge"), await registry.register("dead", lease=0.001)
    await registry.age(judge, steady_since=10)
    await registry.age(dead, lease_until=1)
    await registry.conn.execute("SELECT pg_sleep(0.01)")
    assert await registry.lost(judge) == {dead}
    assert await registry.servers.renew_if_held(registry.conn, dead) is None
    assert not await registry.servers.drain_if_alive(registry.conn, dead)
    assert not await registry.servers.leave_if_draining(registry.conn, dead)
    row = await registry.conn.fetchrow("SELECT state, lost_by, ended_at FROM interlock.server WHERE id = $1", dead)
    assert (row["state"], row["lost_by"], row["ended_at"] is not None) == ("lost", judge, True)


async def test_the_list_shows_the_living_unless_asked_for_all(registry):
    alive, gone = await registry.register("alive"), await registry.register("gone")
    await registry.servers.drain_if_alive(registry.conn, gone)
    await registry.servers.leave_if_draining(registry.conn, gone)
    assert [row.id for row in await registry.servers.list(registry.conn)] == [alive]
    assert {row.id for row in await registry.servers.list(registry.conn, all=True)} == {alive, gone}
    assert len(await registry.servers.list(registry.conn, all=True, limit=1)) == 1


async def test_only_servers_that_ended_long_ago_are_forgotten(registry):
    ids = {name: await registry.register(name) for name in ("alive", "draining", "gone", "recent", "lost")}
    moves = {"draining": ["draining"], "gone": ["draining", "gone"], "recent": ["draining", "gone"], "lost": ["lost"]}
    for name, states in moves.items():
        for state in states:
            await registry.conn.execute("UPDATE interlock.server SET state = $2 WHERE id = $1", ids[name], state)
    for id in ids.values():  # noqa: A001  the row's own word
        await registry.age(id, ended_at=7200)
    await registry.age(ids["recent"], ended_at=60)
    forget = registry.servers.forget
    assert await forget(registry.conn, older_than=timedelta(hours=1), limit=1) == 1
    assert await forget(registry.conn, older_than=timedelta(hours=1), limit=10) == 1
    assert await forget(registry.conn, older_than=timedelta(hours=1), limit=10) == 0
    left = {row.profile.name for row in await registry.servers.list(registry.conn, all=True)}
    assert left == {"alive", "draining", "recent"}
