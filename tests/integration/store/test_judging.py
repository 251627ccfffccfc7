"""An outage kills nobody: who may mark a server lost, and when. Each guard has a control without it."""

from __future__ import annotations

import asyncio
import re

import pytest

from interlock.store.migrate import apply
from interlock.store.server import Servers
from interlock.store.sql import Catalog, compile_statement
from tests.harness.waiting import eventually
from tests.integration.store.conftest import Registry

STEADY, STARTED = "judge.steady_since", "pg_postmaster_start_time"
JUDGE_ALIVE, JUDGE_HOLDS, NOT_LOCKED = "judge.state in", "judge.lease_until", "skip locked"
JUDGE_FRESH = "judge.renewed_at"


class Without(Catalog):
    """The statements, with one guard taken out of `mark_lost`."""

    def __init__(self, *guards: str) -> None:
        super().__init__("interlock")
        self._guards = guards

    def __getitem__(self, name):
        statement = super().__getitem__(name)
        if name != "server/mark_lost":
            return statement
        text = statement.asyncpg.replace("$1", ":judge")
        for guard in self._guards:
            text, found = re.subn(rf"^.*{re.escape(guard)}.*$", "", text, flags=re.MULTILINE)
            assert found == 1, f"the statement has no guard {guard!r}"
        return compile_statement(name, text, self.schema)


def without(registry: Registry, *guards: str) -> Registry:
    return Registry(registry.conn, Servers(Without(*guards)))


async def postgresql_runs_for(registry: Registry, seconds: float) -> None:
    """Wait until nobody is spared any more for a young PostgreSQL."""
    question = f"SELECT pg_postmaster_start_time() + interval '{seconds} s' < statement_timestamp()"
    await eventually(lambda: registry.conn.fetchval(question))


@pytest.fixture
async def judge(registry):
    """A judge that has been steady for an hour."""
    id = await registry.register("judge")  # noqa: A001  the row's own word
    await registry.age(id, steady_since=3600)
    return id


@pytest.fixture
async def expired(registry):
    """A server whose lease of three seconds has expired; PostgreSQL runs for longer than that."""
    id = await registry.register("expired", lease=3)  # noqa: A001  the row's own word
    await registry.age(id, lease_until=1)
    await postgresql_runs_for(registry, 3)
    return id


async def test_an_expired_lease_is_marked_once_and_only_by_a_steady_judge(registry, judge, expired):
    living = await registry.register("living")
    assert await registry.lost(judge) == {expired}
    assert await registry.lost(judge) == set()
    assert await registry.state(living) == await registry.state(judge) == "alive"


async def test_a_draining_server_is_marked_lost_too(registry, judge, expired):
    await registry.servers.drain_if_alive(registry.conn, expired)
    assert await registry.lost(judge) == {expired}


async def test_a_judge_that_just_came_up_spares_everyone_for_one_lease(registry, judge):
    await postgresql_runs_for(registry, 1)
    living = await registry.register("living", lease=1)
    await registry.age(living, lease_until=0.01)
    await registry.age(judge, steady_since=0.3)
    assert await registry.lost(judge) == set()
    await registry.age(judge, steady_since=1.1)
    assert await registry.lost(judge) == {living}


async def test_control_without_the_steady_guard_an_outage_kills_the_living(registry, judge):
    living = await registry.register("living", lease=60)
    await registry.age(living, lease_until=0.01)
    await registry.age(judge, steady_since=0)
    assert await registry.lost(judge) == set()
    assert await without(registry, STEADY, STARTED).lost(judge) == {living}


async def test_an_outage_of_the_judges_own_making_kills_nobody(registry):
    """Both were cut off for longer than a lease; the judge renews first and must not judge the other."""
    await postgresql_runs_for(registry, 1)
    judge, other = await registry.register("judge", lease=1), await registry.register("other", lease=1)
    for id in (judge, other):  # noqa: A001  the row's own word
        await registry.age(id, lease_until=2, renewed_at=3, steady_since=3600)
    assert await registry.servers.renew_if_held(registry.conn, judge) is not None
    assert await registry.lost(judge) == set()
    assert await without(registry, STEADY).lost(judge) == {other}


async def test_a_judge_that_has_not_renewed_since_the_line_came_back_judges_nobody(registry, judge):
    """An outage shorter than the judge's own lease: its recovery tick comes before its heartbeat."""
    await postgresql_runs_for(registry, 1)
    other = await registry.register("other", lease=1)
    await registry.age(other, lease_until=0.01)
    await registry.age(judge, renewed_at=31)
    assert await registry.lost(judge) == set()
    assert await without(registry, JUDGE_FRESH).lost(judge) == {other}


async def test_a_lost_judge_judges_nobody(registry, judge, expired):
    await registry.conn.execute("UPDATE interlock.server SET state = 'lost' WHERE id = $1", judge)
    assert await registry.lost(judge) == set()
    assert await without(registry, JUDGE_ALIVE).lost(judge) == {expired}


async def test_a_judge_whose_own_lease_expired_judges_nobody(registry, judge, expired):
    await registry.age(judge, lease_until=1)
    assert await registry.lost(judge) == set()
    assert await without(registry, JUDGE_HOLDS).lost(judge) == {expired}


async def test_a_judge_that_is_not_registered_judges_nobody(registry, expired):
    assert await registry.lost(expired) == set()
    stranger = await registry.conn.fetchval("SELECT gen_random_uuid()")
    assert await registry.lost(stranger) == set()


async def test_a_row_that_another_transaction_holds_is_passed_over_not_waited_for(
    registry, judge, expired, migrated, connect
):
    holder = await connect(migrated)
    async with holder.transaction():
        await holder.execute("SELECT FROM interlock.server WHERE id = $1 FOR UPDATE", expired)
        assert await asyncio.wait_for(registry.lost(judge), 60) == set()
        await registry.conn.execute("SET lock_timeout = '200ms'")
        with pytest.raises(Exception, match="lock timeout"):
            await without_skipping(registry).lost(judge)
    assert await registry.lost(judge) == {expired}


def without_skipping(registry: Registry) -> Registry:
    servers = Servers(Without())
    text = Catalog("interlock")["server/mark_lost"].asyncpg.replace("$1", ":judge").replace(NOT_LOCKED, "")
    servers._sql = {"server/mark_lost": compile_statement("server/mark_lost", text, "interlock")}
    return Registry(registry.conn, servers)


async def test_a_renewal_that_commits_first_wins(registry, judge, expired, migrated, connect):
    other = await connect(migrated)
    assert await registry.servers.renew_if_held(other, expired) is not None
    assert await registry.lost(judge) == set()


async def test_after_a_restart_of_postgresql_everyone_is_spared_for_one_lease(own_postgres, connect):
    conn = await connect(own_postgres.dsn)
    await apply(conn, "interlock")
    registry = Registry(conn, Servers(Catalog("interlock")))
    judge, living = await registry.register("judge"), await registry.register("living", lease=30)
    await registry.age(judge, steady_since=3600, lease_until=-600)
    await registry.age(living, lease_until=0.01)
    own_postgres.restart("immediate")
    registry.conn = await connect(own_postgres.dsn)
    assert await registry.lost(judge) == set()
    assert await without(registry, STARTED).lost(judge) == {living}


async def test_a_lease_after_the_restart_the_dead_are_marked(own_postgres, connect):
    conn = await connect(own_postgres.dsn)
    await apply(conn, "interlock")
    registry = Registry(conn, Servers(Catalog("interlock")))
    judge, dead = await registry.register("judge"), await registry.register("dead", lease=0.5)
    await registry.age(judge, steady_since=3600)
    assert await eventually(lambda: registry.lost(judge), 60) == {dead}
    assert await conn.fetchval("SELECT statement_timestamp() > pg_postmaster_start_time() + interval '0.5 s'")
